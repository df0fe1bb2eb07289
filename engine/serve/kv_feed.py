"""The engine's log as the KV events that vLLM publishes: a sink for the stepper.

Physical places, owners and counts stay out: readers of such streams know only these fields.
"""

from __future__ import annotations

import time
from typing import Any

import msgspec

from engine.cache_events import AllBlocksCleared, BlockRemoved, BlockStored
from engine.engine import Engine
from engine.event_base import Event
from engine.remote.publisher import Publisher

MEDIUM = "GPU"
"""vLLM's name for the main pool, on whatever device it is; readers look for this word."""


class KvFeed:
    """Publishes one message a step in which the prefix cache changed."""

    def __init__(self, publisher: Publisher) -> None:
        self._publisher = publisher

    def __call__(self, _engine: Engine, events: list[Event]) -> None:
        published = [record for event in events if (record := published_form(event)) is not None]
        if published:
            self._publisher.publish(msgspec.msgpack.encode([time.time(), published, 0]))


def published_form(event: Event) -> dict[str, Any] | None:
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
