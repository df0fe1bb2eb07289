"""Experiment "Why didn't these share?": two prompts, compared block by block."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import TYPE_CHECKING, Any

from course.messages import Facts, Message, Plural, Text
from course.why_not_shared.lesson import LESSON
from engine.i18n import N_, _, counted
from views.browser.text_safe import visible_piece
from views.elements.token_chips import chip
from views.figures import Figure
from views.html_parts import escaped
from views.server.memoize import memoize
from views.server.model_registry import ReadyModel
from views.url_values import ChoiceRule, NumberRule, TextRule

if TYPE_CHECKING:
    from course.why_not_shared.experiment import Edit, SharingAnswer
    from course.why_not_shared.prefill_speed import PrefillSpeed
    from engine.model.weights.load import LoadedModel

KEY = LESSON.key
SPEED = f"{KEY}_speed"
"""The measurement of the loaded model is a task of its own: the answer does not wait for it."""
LONGEST_PROMPT = 20_000
"""Characters, as in course/why_not_shared/experiment.py: system prompts are long."""
MOST_ROWS, ROWS_BEFORE = 200, 4
"""Blocks drawn. Where prompts have more, it is these from a few before the end of what is shared."""
CONTEXT = 300
"""Characters shown of what an edit leaves alone, before it and behind it."""
FIRST = TextRule("first", N_("The first prompt"), LONGEST_PROMPT)
SECOND = TextRule("second", N_("The second prompt, asked later"), LONGEST_PROMPT)
DEFAULT_FIRST = "The quick brown fox jumps over the lazy dog"
DEFAULT_SECOND = " The quick brown fox jumps over the lazy dog"
PLAIN, CHAT = N_("plain text"), N_("chat message")
FIRST_AS = ChoiceRule("first_as", N_("The first prompt is"), (PLAIN, CHAT))
SECOND_AS = ChoiceRule("second_as", N_("The second prompt is"), (PLAIN, CHAT))
BLOCK_SIZE = NumberRule("block_size", N_("Block size"), 1, 16, 4)

_BOTH_PLAIN: dict[str, int | str] = {"first_as": PLAIN, "second_as": PLAIN, "block_size": 4}
EXAMPLES: dict[str, dict[str, int | str]] = {
    N_("A leading space"): {"first": DEFAULT_FIRST, "second": DEFAULT_SECOND, **_BOTH_PLAIN},
    N_("One word"): {
        "first": "You are a helpful assistant. Answer in one word. What is the capital of France?",
        "second": "You are a helpful assistant. Answer in one line. What is the capital of France?",
        **_BOTH_PLAIN,
    },
    N_("A last block that is not full"): {
        "first": "The quick brown fox jumps",
        "second": "The quick brown fox jumps over",
        **_BOTH_PLAIN,
    },
    N_("The same prompt twice"): {
        "first": "One two three four five six seven",
        "second": "One two three four five six seven",
        **_BOTH_PLAIN,
    },
    N_("A chat template"): {
        "first": "Tell me a story",
        "second": "Tell me a story",
        "first_as": CHAT,
        "second_as": PLAIN,
        "block_size": 4,
    },
    N_("The date first"): {
        "first": "Today is Monday. You are a helpful assistant who answers in short and plain sentences.",
        "second": "Today is Tuesday. You are a helpful assistant who answers in short and plain sentences.",
        **_BOTH_PLAIN,
    },
}

FIGURES = (
    Figure(N_("Blocks shared"), "{answer.num_shared_blocks}"),
    Figure(N_("Tokens found in the cache"), N_("{answer.num_shared_tokens} of {num_tokens}")),
    Figure(N_("Equal tokens at the beginning"), "{answer.num_common_tokens}"),
    Figure(N_("First token that differs"), "{first_difference}"),
)
EDIT = Message(
    N_("Change {num_characters} of the second prompt, and it shares {num_shared_blocks}:"),
    num_characters=Plural("edit.num_characters", "{n} character", "{n} characters"),
    num_shared_blocks=Plural("edit.num_shared_blocks", "{n} block", "{n} blocks"),
)
SAVED = Message(
    N_(
        "**Time to first token saved: about {saved}** ({least} to {most} in {runs}). This machine computes "
        "{speed.tokens_per_second:,.0f} tokens of a prompt a second, measured on prompts of {length} with "
        "{info[model]} in {info[dtype]} on {info[device]}, attention backend {info[backend]}."
    ),
    runs=Plural("speed.num_repeats", "{n} run", "{n} runs"),
    length=Plural("speed.num_tokens", "{n} token", "{n} tokens"),
)
SAVED_BY_EDIT = N_("With the smallest edit it would be about {saved_by_edit} more.")
UNCERTAIN = Message(
    N_(
        "No time is shown: with {info[model]} in {info[dtype]}, attention backend {info[backend]}, a prompt of "
        "{length} takes no longer than one of {speed.num_fewest_tokens} as far as this clock can tell."
    ),
    length=Plural("speed.num_tokens", "{n} token", "{n} tokens"),
)
NO_EDIT = N_("No edit at the beginning of the second prompt makes it share more blocks.")


@dataclass(frozen=True)
class SharingInputs:
    """What decides the result."""

    model: str
    first: str
    second: str
    first_as: str
    second_as: str
    block_size: int


def compare(model: ReadyModel, inputs: SharingInputs) -> SharingAnswer:
    """Raises ValueError with a sentence for an empty prompt, or a chat without a template."""
    from course.why_not_shared.experiment import TypedPrompt, why_not_shared  # torch comes with it

    return why_not_shared(
        model.weights.tokenizer,
        inputs.block_size,
        TypedPrompt(inputs.first, inputs.first_as == CHAT),
        TypedPrompt(inputs.second, inputs.second_as == CHAT),
    )


def facts(answer: SharingAnswer) -> Facts:
    """What the page's templates name."""
    return {
        "answer": answer,
        "num_tokens": len(answer.tokens[1]),
        "first_difference": "none" if answer.first_difference is None else answer.first_difference,
        "edit": answer.edit,
    }


@memoize(maxsize=4)
def speed_of(weights: LoadedModel) -> PrefillSpeed:
    """Measured once a server: who asks first waits for it."""
    from course.why_not_shared.prefill_speed import prefill_speed
    from engine.inspect.scratch import components_factory

    return prefill_speed(components_factory(weights), weights.name)


def time_saved(answer: SharingAnswer, speed: PrefillSpeed, info: Mapping[str, Any]) -> tuple[tuple[Text, ...], Facts]:
    """Templates and their facts. `info`: of the model that was measured, as in a trace."""
    facts: dict[str, Any] = {"speed": speed, "info": info}
    if not speed.is_certain:
        return (UNCERTAIN,), facts
    saved, by_edit = speed.saved_ms(answer.num_shared_tokens), speed.saved_ms(answer.num_more_tokens)
    facts |= {"saved": _duration(saved.median), "least": _duration(saved.lowest), "most": _duration(saved.highest)}
    return (SAVED, SAVED_BY_EDIT) if answer.edit else (SAVED,), facts | {"saved_by_edit": _duration(by_edit.median)}


def _duration(ms: float) -> str:
    return f"{ms:,.0f} ms" if ms < 1000 else f"{ms / 1000:.1f} s"


def blocks_table(answer: SharingAnswer) -> str:
    """One row a block: what both prompts have in it, and whether the second finds it."""
    drawn, num_blocks = _drawn_rows(answer), _num_blocks(answer)
    body = "".join(_row(answer, index) for index in drawn)
    head = "".join(
        f'<th scope="col">{name}</th>'
        for name in (_("Block"), _("The first prompt"), _("The second prompt"), _("Shared?"))
    )
    caption = counted(
        "Both prompts in blocks of {n} token; spaces are drawn as ·",
        "Both prompts in blocks of {n} tokens; spaces are drawn as ·",
        answer.block_size,
    )
    if any(answer.control):
        caption += _(", control tokens with a dotted frame")
    if len(drawn) < num_blocks:
        caption += _(". Drawn: blocks {first} to {last} of {num_blocks}").format(
            first=drawn.start, last=drawn.stop - 1, num_blocks=num_blocks
        )
    label = escaped(_("Both prompts, block by block"))
    return (
        f'<div class="pv-table pv-tall" role="region" tabindex="0" aria-label="{label}">'
        f"<table data-blocks><caption>{caption}</caption>"
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def _num_blocks(answer: SharingAnswer) -> int:
    return -(-max(map(len, answer.pieces)) // answer.block_size)


def _drawn_rows(answer: SharingAnswer) -> range:
    """All blocks, or MOST_ROWS from a few before the first one that is not shared."""
    num_blocks = _num_blocks(answer)
    first = min(max(answer.num_shared_blocks - ROWS_BEFORE, 0), max(num_blocks - MOST_ROWS, 0))
    return range(first, min(first + MOST_ROWS, num_blocks))


def _row(answer: SharingAnswer, index: int) -> str:
    is_shared = index < answer.num_shared_blocks
    cells = "".join(f"<td>{_tokens(answer, prompt, index)}</td>" for prompt in (0, 1))
    word = _("yes") if is_shared else _("no")
    return f'<tr data-shared="{str(is_shared).lower()}"><th scope="row">{index}</th>{cells}<td>{word}</td></tr>'


def _tokens(answer: SharingAnswer, prompt: int, index: int) -> str:
    start, size = index * answer.block_size, answer.block_size
    pieces = answer.pieces[prompt][start : start + size]
    empty = size - len(pieces) if pieces else 0
    chips = "".join(
        chip(piece, _kind(answer, position), is_control=position in answer.control[prompt])
        for position, piece in enumerate(pieces, start)
    )
    return chips + '<span class="pv-piece empty" aria-hidden="true">&nbsp;</span>' * empty


def _kind(answer: SharingAnswer, position: int) -> str:
    if position < answer.num_shared_blocks * answer.block_size:
        return "shared"
    if position < answer.num_common_tokens:
        return "common"
    return "differs"


def reasons(answer: SharingAnswer) -> str:
    """Why it is not one block more, in the engine's sentences."""
    return f'<ul class="pv-captions">{"".join(f"<li>{escaped(reason)}</li>" for reason in answer.reasons)}</ul>'


def edited(old: str, edit: Edit) -> str:
    """The edit in the second prompt: what goes is struck out, what comes is underlined, spaces of both visible.

    Of a long text, only what stands around the edit.
    """
    before = _num_equal(old, edit.text)
    after = _num_equal(old[before:][::-1], edit.text[before:][::-1])
    ours, theirs = old[before : len(old) - after], edit.text[before : len(edit.text) - after]
    parts = [escaped(old[:before] if before <= CONTEXT else f"…{old[before - CONTEXT : before]}")]
    for operation, i, j, k, m in SequenceMatcher(None, ours, theirs, autojunk=False).get_opcodes():
        if operation == "equal":
            parts.append(escaped(ours[i:j]))
            continue
        parts.append(f"<del>{escaped(_visible(ours[i:j]))}</del>" if j > i else "")
        parts.append(f"<ins>{escaped(_visible(theirs[k:m]))}</ins>" if m > k else "")
    rest = old[len(old) - after :]
    parts.append(escaped(rest if after <= CONTEXT else f"{rest[:CONTEXT]}…"))
    return f'<div class="pv-text pv-edit" dir="auto" data-edit>{"".join(parts)}</div>'


def _num_equal(one: str, other: str) -> int:
    """Characters that both begin with."""
    shorter = min(len(one), len(other))
    return next((i for i in range(shorter) if one[i] != other[i]), shorter)


def _visible(text: str) -> str:
    return "".join(map(visible_piece, text))
