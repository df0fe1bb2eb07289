"""Lesson "Reserved space can go unused": one request in one contiguous reservation."""

from __future__ import annotations

from collections.abc import Sequence

from engine.contiguous_scenes import one_reservation
from engine.scenes.scene import Scene
from engine.scenes.words import passage


def reservation(num_reserved: int, words: Sequence[str]) -> Scene:
    """A reservation of `num_reserved` slots that takes the words one by one. Values: tokens written, 0 to all words.

    The engine's arena makes every frame. Raises ValueError when there is no word, or more words than slots.
    """
    trace = one_reservation(num_reserved, words)
    return Scene(trace, {count: count for count in range(len(words) + 1)}, "tokens written")


def reservation_of_length(num_reserved: int, most_used: int) -> Scene:
    """The same for lengths alone: 0 to `most_used` tokens of running text."""
    return reservation(num_reserved, passage(most_used))
