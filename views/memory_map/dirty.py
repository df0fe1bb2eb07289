"""The dirty set of events: the part of the state worth comparing again. Comparing all of it would cost a 2,000-step
run of a large pool minutes; this costs it a second."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from engine.trace import events as ev
from engine.trace.state import CacheState

_MOVES_EVERYTHING = (ev.PoolCreated, ev.ArenaCreated, ev.BlocksShuffled, ev.AllBlocksCleared)
_BLOCK_FIELDS = ("block_id", "src_block_id", "dst_block_id")
_SEQ_FIELDS = ("seq_id", "parent_seq_id")


@dataclass
class DirtySet:
    """Names of what may have changed. `everything`: compare all of it."""

    everything: bool = False
    blocks: set[int] = field(default_factory=set)
    cpu_blocks: set[int] = field(default_factory=set)
    slots: set[int] = field(default_factory=set)
    seq_ids: set[str] = field(default_factory=set)
    request_ids: set[str] = field(default_factory=set)


EVERYTHING = DirtySet(everything=True)


def dirty_set_of(events: Iterable[ev.Event], state: CacheState) -> DirtySet:
    """What some events, already folded into `state`, may have changed."""
    dirty = DirtySet()
    for event in events:
        if isinstance(event, _MOVES_EVERYTHING):
            return EVERYTHING
        _add(event, dirty, state)
    return dirty


def _add(event: ev.Event, dirty: DirtySet, state: CacheState) -> None:
    dirty.blocks.update(_known(event, _BLOCK_FIELDS))
    dirty.seq_ids.update(_known(event, _SEQ_FIELDS))
    if hasattr(event, "cpu_block_id"):
        dirty.cpu_blocks.add(event.cpu_block_id)
    if isinstance(event, ev.SlotsWritten):
        dirty.slots.update(event.slots)
        if state.block_size and not state.arena:
            dirty.blocks.update(slot // state.block_size for slot in event.slots)
    if hasattr(event, "request_id"):
        dirty.request_ids.add(event.request_id)
        if event.request_id in state.requests:
            dirty.seq_ids.update(state.requests[event.request_id].seq_ids)


def _known(event: ev.Event, names: Iterable[str]) -> set[Any]:
    """What the event says in these fields; a server's events leave them out."""
    return {value for name in names if (value := getattr(event, name, None)) is not None}
