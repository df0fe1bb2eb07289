"""The engine's log as the KV events that vLLM publishes: a sink of AsyncEngine.

Block ids, sequences and reference counts are left out: readers of such streams know only these fields.
"""

from __future__ import annotations

import time
from typing import Any

import msgspec

from engine.engine import Engine
from engine.remote.publisher import Publisher
from engine.trace.cache_events import AllBlocksCleared, BlockRemoved, BlockStored
from engine.trace.event_base import Event

MEDIUM = "GPU"
"""vLLM's name for the main pool, on whatever device it is; readers look for this word."""


class KVEventPublisher:
    """Publishes one message a step in which the prefix cache changed."""

    def __init__(self, publisher: Publisher) -> None:
        self._publisher = publisher

    def __call__(self, _engine: Engine, events: list[Event]) -> None:
        published = [record for event in events if (record := to_kv_event(event)) is not None]
        if published:
            self._publisher.publish(msgspec.msgpack.encode([time.time(), published, 0]))


def to_kv_event(event: Event) -> dict[str, Any] | None:
    """The event as a map with a `type`; None for what is not published."""
    match event:
        case BlockStored():
            return {
                "type": "BlockStored",
                "block_hashes": [event.block_hash],
                "parent_block_hash": event.parent_block_hash,
                "token_ids": event.token_ids,
                "block_size": event.block_size,
                "lora_id": None,
                "medium": MEDIUM,
                "lora_name": None,
                "extra_keys": [None],
                "group_idx": 0,
                "kv_cache_spec_kind": "full_attention",
            }
        case BlockRemoved():
            return {"type": "BlockRemoved", "block_hashes": [event.block_hash], "medium": MEDIUM, "group_idx": 0}
        case AllBlocksCleared():
            return {"type": "AllBlocksCleared"}
    return None
