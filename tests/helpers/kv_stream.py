"""KV-event messages as servers send them, made for tests."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from tests.helpers.waiting import until

SECONDS_TO_WAIT = 20.0


def stored(
    hashes: Sequence[object], parent: int | bytes | None, token_ids: Sequence[int], block_size: int, **more: Any
) -> dict[str, Any]:
    return {
        "type": "BlockStored",
        "block_hashes": list(hashes),
        "parent_block_hash": parent,
        "token_ids": list(token_ids),
        "block_size": block_size,
        **more,
    }


def removed(*hashes: int | bytes, **more: Any) -> dict[str, Any]:
    return {"type": "BlockRemoved", "block_hashes": list(hashes), **more}


CLEARED = {"type": "AllBlocksCleared"}


def payload(*events: Any, rank: int | None = None, timestamp: Any = 1_000.0) -> bytes:
    return msgspec.msgpack.encode([timestamp, list(events), rank])


def one_block(number: int) -> bytes:
    """A message that stores block `number` of two tokens, with no parent."""
    return payload(stored([number], None, [number, number], 2))


def wait_until(condition: Callable[[], bool], what: str = "it") -> None:
    until(condition, SECONDS_TO_WAIT, what)
