"""Lesson "Reserved space can go unused": one request in one contiguous reservation."""

from __future__ import annotations

from collections.abc import Sequence

from course.scene import Scene
from course.words import passage
from engine.baselines.arrivals import Arrival
from engine.baselines.contiguous import Arena
from engine.baselines.fragmentation import Waste, waste
from engine.baselines.reservations import Fixed
from engine.i18n import _
from engine.trace.trace import Trace

LIMIT = 2048
REPLIES = (12, 60, 900)
"""Tokens of three replies to one question, which nobody could tell apart before: short, usual, long."""


def reservation(num_reserved: int, words: Sequence[str]) -> Scene:
    """A reservation of `num_reserved` slots that takes the words one by one. Values: tokens written, 0 to all words.

    The engine's arena makes every frame. Raises ValueError when there is no word, or more words than slots.
    """
    trace = one_reservation(num_reserved, words)
    return Scene(trace, {count: count for count in range(len(words) + 1)}, "tokens written")


def reservation_of_length(num_reserved: int, most_used: int) -> Scene:
    """The same for lengths alone: 0 to `most_used` tokens of running text."""
    return reservation(num_reserved, passage(most_used))


def waste_of_replies(num_reserved: int = LIMIT, lengths: Sequence[int] = REPLIES) -> list[Waste]:
    """What each reply leaves empty in a reservation of its own, at its end."""
    return [waste(reservation_of_length(num_reserved, length).at(length)) for length in lengths]


def one_reservation(num_reserved: int, words: Sequence[str]) -> Trace:
    """One request in a reservation of `num_reserved` slots. After step `k`, `k` of the words are written.

    The first word stands for the prompt. Raises ValueError when there is none, or more than slots.
    """
    if not 1 <= len(words) <= num_reserved:
        raise ValueError(
            _("A reservation of {num_reserved} slots holds 1 to {num_reserved} words, not {num_words}.").format(
                num_reserved=num_reserved, num_words=len(words)
            )
        )
    arena = Arena(num_reserved, Trace(), Fixed(num_reserved))
    arena.reserve(Arrival.from_words("A", words[:1], words[1:]))
    _write_one_a_step(arena, "A", len(words))
    return arena.trace


def _write_one_a_step(arena: Arena, request_id: str, num_tokens: int) -> None:
    """The prompt in one step, then each further token in its own."""
    arena.trace.step += 1
    arena.write(request_id)
    for _index in range(num_tokens - arena.residents[request_id].num_tokens):
        arena.trace.step += 1
        arena.append(request_id)
