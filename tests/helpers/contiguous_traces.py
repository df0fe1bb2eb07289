"""Traces of contiguous memory that no page shows: gaps between requests, and the paper's Fig. 3."""

from __future__ import annotations

from typing import Literal

from engine.baselines.arrivals import Arrival
from engine.baselines.contiguous import Arena
from engine.baselines.reservations import Oracle
from engine.trace.trace import Trace


class OwnLimit:
    """The longest sequence the request itself allows: its prompt and its `max_tokens`."""

    label = "Own limit"

    def num_slots(self, arrival: Arrival) -> int:
        assert arrival.max_tokens is not None
        return arrival.num_prompt_tokens + arrival.max_tokens


def scattered_gaps(allocator: Literal["first_fit", "best_fit"] = "first_fit") -> tuple[Trace, Arena]:
    """Free gaps of 8, 6 and 10 slots between two running requests; then a request of 20 is refused.

    Steps 1 to 5 fill memory with A to E, steps 6 to 8 finish A, C and E, step 9 refuses F. The arena comes along so
    that a reader can go on from there.
    """
    lengths = {"A": 8, "B": 4, "C": 6, "D": 5, "E": 10}
    arena = Arena(sum(lengths.values()), Trace(), Oracle(), allocator)
    for request_id, length in lengths.items():
        arena.trace.step += 1
        _reserve_and_fill(arena, request_id, length)
    for request_id in ("A", "C", "E"):
        arena.trace.step += 1
        arena.finish(request_id)
    arena.trace.step += 1
    arena.reserve(Arrival.from_lengths("F", 8, 12))
    return arena.trace, arena


def paper_figure_3() -> Trace:
    """Kwon et al. 2023, Fig. 3: limits of 2,048 and 512, of which 2,038 and 507 slots are never used.

    Step 1: both prompts. Step 2: each has one word of its reply; A will get two more, B one.
    """
    prompt_a = ["Four", "score", "and", "seven", "years", "ago", "our"]
    request_a = Arrival.from_words("A", prompt_a, ["fathers", "brought", "forth"], max_tokens=2048 - len(prompt_a))
    prompt_b = ["You", "only", "live"]
    request_b = Arrival.from_words("B", prompt_b, ["once", "<eos>"], max_tokens=512 - len(prompt_b))
    arena = Arena(2048 + 512, Trace(), OwnLimit())
    arena.trace.step = 1
    for request in (request_a, request_b):
        arena.reserve(request)
        arena.write(request.request_id)
    arena.trace.step = 2
    for request in (request_a, request_b):
        arena.append(request.request_id)
    return arena.trace


def _reserve_and_fill(arena: Arena, request_id: str, length: int) -> None:
    arena.reserve(Arrival.from_lengths(request_id, 1, length - 1))
    arena.append(request_id, length - 1)
