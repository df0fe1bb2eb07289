"""An exercise sheet from a seed: one question a lesson, answered by the engine. Experiments of the lab ask when named.

python -m course.drill --seed 7               the sheet
python -m course.drill --seed 7 --reveal      with the answers, and why the others are wrong
python -m course.drill --lesson growth --count 5
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence

from course.pages import EXPERIMENTS, LESSONS, lesson_by_key
from course.question import Choice, Question
from engine.i18n import _

MAX_COUNT = 100


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the sheet. Returns the exit status."""
    options = _options(arguments)
    lessons = [lesson_by_key(key) for key in options.lesson] if options.lesson else LESSONS
    asked = [lesson.question(options.seed + i) for lesson in lessons for i in range(options.count)]
    print("\n".join(sheet(asked, options.seed, options.reveal)))
    return 0


def sheet(questions: Sequence[Question], seed: int, reveal: bool) -> Iterator[str]:
    """The lines of the sheet."""
    yield f"Paged attention: exercises, seed {seed}"
    for number, asked in enumerate(questions, 1):
        yield ""
        yield f"{number}. {lesson_by_key(asked.lesson).short_name}"
        yield from (f"   {line}" for line in asked.prompt.splitlines())
        yield ""
        for letter, choice in zip("abcd", asked.choices, strict=False):
            yield f"   {letter}) {choice.text}"
            if reveal:
                yield f"      {_verdict(choice)}"
    if not reveal:
        yield ""
        yield _("The same command with --reveal gives the answers.")


def _verdict(choice: Choice) -> str:
    return f"Right. {choice.why}" if choice.is_right else f"Wrong. {choice.why}"


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m course.drill", description="An exercise sheet from a seed.")
    parser.add_argument("--seed", type=int, default=1, help="same seed, same sheet (default: 1)")
    parser.add_argument("--reveal", action="store_true", help="print the answers, and why the others are wrong")
    parser.add_argument(
        "--lesson", action="append", choices=[lesson.key for lesson in (*LESSONS, *EXPERIMENTS)],
        help="this lesson or experiment only (may be repeated)",
    )  # fmt: skip
    parser.add_argument("--count", type=_count, default=1, help=f"questions a lesson, 1 to {MAX_COUNT} (default: 1)")
    return parser.parse_args(arguments)


def _count(text: str) -> int:
    if not (text.isascii() and text.isdigit() and 1 <= int(text) <= MAX_COUNT):
        raise argparse.ArgumentTypeError(
            _("must be a whole number from 1 to {max_count}; it is {text!r}").format(
                max_count=MAX_COUNT, text=text[:20]
            )
        )
    return int(text)


if __name__ == "__main__":
    raise SystemExit(main())
