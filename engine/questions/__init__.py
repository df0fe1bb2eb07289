"""Predict, then reveal: questions from a seed, answered by running the lesson's scene and counting its fold.

from engine.questions import LESSONS, question
question("growth", seed=7)
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from random import Random

from engine.questions import batch, block_table, fragmentation, growth, lab, reservation, sharing, what_is_cached
from engine.questions.question import Choice, Draft, Misconception, Question, finish

__all__ = ["EXPERIMENTS", "LESSONS", "Choice", "Misconception", "Question", "question"]

_KINDS: dict[str, tuple[Callable[[Random], Draft], ...]] = {
    "what_is_cached": what_is_cached.KINDS,
    "reservation": reservation.KINDS,
    "fragmentation": fragmentation.KINDS,
    "growth": growth.KINDS,
    "block_table": block_table.KINDS,
    "sharing": sharing.KINDS,
    "batch": batch.KINDS,
}
LESSONS = tuple(_KINDS)
"""Lessons that ask, in the order of the course; the names are those of the modules in `engine/scenes`."""
EXPERIMENTS = tuple(lab.KINDS)
"""Experiments of the lab that ask; the names are the keys of their pages."""


@lru_cache(maxsize=64)
def question(lesson: str, seed: int) -> Question:
    """The question of that lesson or experiment and seed. Neighbouring seeds ask different kinds in turn.

    Raises ValueError for one that does not ask.
    """
    if lesson not in (*LESSONS, *EXPERIMENTS):
        raise ValueError(f"The lesson must be one of {', '.join((*LESSONS, *EXPERIMENTS))}; it is {lesson!r}.")
    random = Random(f"{lesson}/{seed}")
    kinds = (_KINDS | lab.KINDS)[lesson]
    return finish(lesson, seed, kinds[seed % len(kinds)](random), random)
