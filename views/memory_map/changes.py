"""Which one fast move each event gets: from what, to what."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from engine.trace import events as ev

Change = dict[str, Any]
"""`{"kind": ..., "block": ..., "seq_id": ...}`: kinds are allocated, shared, copied, freed, swapped_out,
swapped_in, shuffled, reserved, released and written; ids are the event's own."""

MOST_TOKENS = 8
"""Tokens whose way into their slots is shown. Of more at once nobody sees where they go: their blocks move."""


def changes(events: Iterable[ev.Event]) -> list[Change]:
    """The moves of some events, in order. Events that move nothing are left out."""
    return [change for event in events if (change := _change(event)) is not None]


def _change(event: ev.Event) -> Change | None:
    match event:
        case ev.BlockAllocated():
            return {
                "kind": "allocated",
                "block": event.block_id,
                "seq_id": event.seq_id,
                "logical": event.logical_index,
            }
        case ev.BlockShared():
            return {"kind": "shared", "block": event.block_id, "seq_id": event.seq_id, "logical": event.logical_index}
        case ev.BlockCopied():
            return {"kind": "copied", "src": event.src_block_id, "block": event.dst_block_id, "seq_id": event.seq_id}
        case ev.BlockFreed():
            return {"kind": "freed", "block": event.block_id, "seq_id": event.seq_id}
        case ev.BlockSwappedOut():
            return {"kind": "swapped_out", "block": event.block_id, "cpu": event.cpu_block_id, "seq_id": event.seq_id}
        case ev.BlockSwappedIn():
            return {"kind": "swapped_in", "block": event.block_id, "cpu": event.cpu_block_id, "seq_id": event.seq_id}
        case ev.BlocksShuffled():
            return {"kind": "shuffled", "permutation": list(event.permutation)}
        case ev.RegionReserved():
            return {"kind": "reserved", "start": event.start, "slots": event.num_slots, "request_id": event.request_id}
        case ev.RegionFreed():
            return {"kind": "released", "start": event.start, "slots": event.num_slots, "request_id": event.request_id}
        case ev.SlotsWritten() if len(event.slots) <= MOST_TOKENS:
            return {"kind": "written", "seq_id": event.seq_id, "start": event.start, "slots": list(event.slots)}
        case _:
            return None
