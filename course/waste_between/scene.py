"""Lesson "Waste between reservations": requests come and go, in runs of neighbouring slots and on pages."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from course.conversation import CONVERSATION, SECOND_TURN
from course.paged_arena import PagedArena
from course.scene import Scene
from course.waste_between.actions import Action, Add, Finish, parse_actions
from engine.baselines.arrivals import Arrival
from engine.baselines.contiguous import Arena
from engine.baselines.reservations import Oracle
from engine.i18n import _
from engine.trace.trace import Trace

NUM_SLOTS = 32
BLOCK_SIZE = 2
GAPS = parse_actions("A8 B4 C6 D4 E10 -A -C -E F20")
"""Memory fills, three requests end and leave gaps of 8, 6 and 10 slots; then one of 20 asks for a run."""

CHAT_SLOTS = 96
CHAT_WORDS = {name: request.words for name, request in zip("ABCD", (*CONVERSATION, SECOND_TURN), strict=True)}
CHAT: tuple[Action, ...] = (
    *(Add(name, len(CHAT_WORDS[name])) for name in "ABC"),
    Finish("A"),
    Add("D", len(CHAT_WORDS["D"])),
)
"""Three chat requests; the first ends, and its user asks again: D is longer than either gap."""


NO_WORDS: Mapping[str, Sequence[str]] = MappingProxyType({})


@dataclass(frozen=True)
class Fragmentation:
    """The same actions on both layouts of the same memory. Value k shows memory after the first k actions."""

    contiguous: Scene
    paged: Scene


def fragmentation(
    actions: Sequence[Action] = GAPS,
    allocator: str = "first_fit",
    num_slots: int = NUM_SLOTS,
    block_size: int = BLOCK_SIZE,
    words: Mapping[str, Sequence[str]] = NO_WORDS,
) -> Fragmentation:
    """Both layouts. `allocator`: first_fit | best_fit | buddy. Values: actions done, 0 to all.

    `words`: what a request stores, by its name, where it has that many tokens; other tokens are numbers.

    A request that finds no room is refused and not tried again; finishing one that holds nothing changes nothing.
    The pool has `num_slots // block_size` blocks, so the paged half never has more memory.
    Raises ValueError when a size is out of range.
    """
    if not 1 <= block_size <= num_slots:
        raise ValueError(
            _("A block has 1 to {num_slots} slots here, not {block_size}.").format(
                num_slots=num_slots, block_size=block_size
            )
        )
    return Fragmentation(
        in_runs(actions, allocator, num_slots, words), on_pages(actions, num_slots // block_size, block_size, words)
    )


def in_runs(
    actions: Sequence[Action] = GAPS,
    allocator: str = "first_fit",
    num_slots: int = NUM_SLOTS,
    words: Mapping[str, Sequence[str]] = NO_WORDS,
) -> Scene:
    """The contiguous half: every request reserves exactly what it needs, as one run."""
    arena = Arena(num_slots, Trace(info={"source": "contiguous", "allocator": allocator}), Oracle(), allocator)

    def reserve_and_fill(arrival: Arrival) -> None:
        if arena.reserve(arrival):
            arena.append(arrival.request_id, arrival.num_output_tokens)

    return _replay(actions, arena, reserve_and_fill, words)


def on_pages(
    actions: Sequence[Action], num_blocks: int, block_size: int, words: Mapping[str, Sequence[str]] = NO_WORDS
) -> Scene:
    """The paged half: every request takes the blocks it needs, wherever they are."""
    memory = PagedArena(num_blocks, block_size, Trace(info={"source": "engine, blocks by hand"}))
    return _replay(actions, memory, memory.store, words)


def _replay(
    actions: Sequence[Action],
    memory: Arena | PagedArena,
    add: Callable[[Arrival], object],
    words: Mapping[str, Sequence[str]],
) -> Scene:
    """One step for each action that changes something."""
    frames, trace = {0: 0}, memory.trace
    for number, action in enumerate(actions, 1):
        if isinstance(action, Add):
            trace.step += 1
            add(_arrival(action, words.get(action.request_id, ())))
        elif action.request_id in memory.residents:
            trace.step += 1
            memory.finish(action.request_id)
        memory.check_invariants()
        frames[number] = trace.step
    return Scene(trace, frames, "actions")


def _arrival(action: Add, words: Sequence[str]) -> Arrival:
    if len(words) == action.num_tokens:
        return Arrival.from_words(action.request_id, words[:1], words[1:])
    return Arrival.from_lengths(action.request_id, 1, action.num_tokens - 1)
