"""Scripted scenes of contiguous memory: every frame made by real reserve, append and finish calls, one a step.

Each returns the trace; `trace.at(step)` is a frame, `engine/waste.py` counts it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from engine.arrivals import Arrival
from engine.contiguous import Arena
from engine.reservations import Fixed, Oracle, OwnLimit
from engine.trace import Trace


def one_reservation(num_reserved: int, words: Sequence[str]) -> Trace:
    """One request in a reservation of `num_reserved` slots. After step `k`, `k` of the words are written.

    The first word stands for the prompt. Raises ValueError when there is none, or more than slots.
    """
    if not 1 <= len(words) <= num_reserved:
        raise ValueError(f"A reservation of {num_reserved} slots holds 1 to {num_reserved} words, not {len(words)}.")
    arena = Arena(num_reserved, Trace(), Fixed(num_reserved))
    arena.reserve(Arrival.from_words("A", words[:1], words[1:]))
    _write_one_a_step(arena, "A", len(words))
    return arena.trace


def reservations_side_by_side(lengths: Sequence[int], num_reserved: int) -> Trace:
    """A batch of requests, each with `num_reserved` slots. Step `k` writes all tokens of request `k`, counted from 1.

    Raises ValueError when a length is not 1 to `num_reserved`.
    """
    if not lengths or not all(1 <= length <= num_reserved for length in lengths):
        raise ValueError(f"Every request needs a length of 1 to {num_reserved}.")
    arena = Arena(len(lengths) * num_reserved, Trace(), Fixed(num_reserved))
    for number, length in enumerate(lengths, 1):
        arena.trace.step = number
        arrival = Arrival.from_lengths(f"R{number}", 1, length - 1, arrival_step=number)
        arena.reserve(arrival)
        arena.append(arrival.request_id, arrival.num_output_tokens)
    return arena.trace


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


def _write_one_a_step(arena: Arena, request_id: str, num_tokens: int) -> None:
    """The prompt in one step, then each further token in its own."""
    arena.trace.step += 1
    arena.write(request_id)
    for _ in range(num_tokens - arena.residents[request_id].num_tokens):
        arena.trace.step += 1
        arena.append(request_id)


def _reserve_and_fill(arena: Arena, request_id: str, length: int) -> None:
    arena.reserve(Arrival.from_lengths(request_id, 1, length - 1))
    arena.append(request_id, length - 1)
