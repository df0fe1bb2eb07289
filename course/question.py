"""What a lesson's question is made of: the draft that the lesson computes, and the choices a reader gets."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random

from course.misconceptions import Misconception
from course.scene import Scene
from engine.i18n import _

MAX_WRONG = 3
MIN_WRONG = 2


@dataclass(frozen=True, slots=True)
class Choice:
    """One answer to choose. `why`: one sentence, why it is right or wrong."""

    text: str
    is_right: bool
    why: str
    misconception: Misconception | None = None


@dataclass(frozen=True, slots=True)
class Wrong:
    """A wrong answer as a lesson proposes it: what somebody with that misconception would say."""

    text: str
    why: str
    misconception: Misconception


@dataclass(frozen=True)
class Draft:
    """What a lesson makes: the right answer read from the scene, wrong ones in order of preference.

    `prompt` has one idea a line. `controls` are the arguments of the lesson's scene; `scene` at `value` is the
    picture that shows the answer (None when the answer is no picture of memory).
    """

    prompt: str
    right: str
    because: str
    wrong: tuple[Wrong, ...]
    controls: Mapping[str, int | str] = field(default_factory=dict)
    scene: Scene | None = None
    value: int | None = None


QuestionKind = Callable[[Random], Draft]
"""Draws the figures of a question, runs its scene, and words what it found."""


@dataclass(frozen=True)
class Question:
    """A draft with its choices shuffled. The same lesson and seed always give the same question."""

    lesson: str
    seed: int
    draft: Draft
    choices: tuple[Choice, ...]

    @property
    def prompt(self) -> str:
        """The draft's question."""
        return self.draft.prompt

    @property
    def right(self) -> Choice:
        """The right choice."""
        return next(choice for choice in self.choices if choice.is_right)


def finish(lesson: str, seed: int, draft: Draft, random: Random) -> Question:
    """Keep the wrong answers that differ from the right one and from each other, and shuffle all.

    Raises ValueError when fewer than two are left: the lesson must not draw such figures.
    """
    wrong: dict[str, Choice] = {}
    for proposal in draft.wrong:
        if proposal.text != draft.right:
            wrong.setdefault(proposal.text, Choice(proposal.text, False, proposal.why, proposal.misconception))
    if len(wrong) < MIN_WRONG:
        raise ValueError(
            _("A question of lesson {lesson} (seed {seed}) has {num_wrong} wrong answers.").format(
                lesson=lesson, seed=seed, num_wrong=len(wrong)
            )
        )
    choices = [Choice(draft.right, True, draft.because), *list(wrong.values())[:MAX_WRONG]]
    random.shuffle(choices)
    return Question(lesson, seed, draft, tuple(choices))


def listed(numbers: Sequence[int]) -> str:
    """`8, 6 and 10`"""
    *most, last = map(str, numbers)
    return _("{most} and {last}").format(most=", ".join(most), last=last) if most else last
