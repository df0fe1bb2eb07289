"""One message of a server's KV-event stream: msgpack bytes -> the events of `engine/trace/cache_events.py`.

A payload is `[timestamp, [events], data_parallel_rank]`. An event is an array `["BlockStored", hashes, parent, ...]`
(older vLLM) or a map `{"type": "BlockStored", "block_hashes": ...}` (vLLM since mid-2026, SGLang). Both are input
from another machine: unknown types and fields are left out, wrong ones are counted, sizes are bounded.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from engine.i18n import _
from engine.trace.cache_events import AllBlocksCleared, BlockHash, BlockRemoved, BlockStored
from engine.trace.event_base import Event

MAX_PAYLOAD = 1 << 21
"""Bytes of one message, 2 MiB: about 10,000 blocks, more than a scheduler step fills."""
MAX_BLOCKS_A_MESSAGE = 1 << 14
MAX_BLOCK_SIZE = 1 << 12
MAX_HASH_BYTES = 64
MAX_RANKS = 64
LATEST_TIMESTAMP = 4e9
"""Seconds since 1970, in the year 2096: what lies beyond is no time of sending."""

_FIELDS = {
    "BlockStored": (
        "block_hashes", "parent_block_hash", "token_ids", "block_size", "lora_id", "medium", "lora_name",
        "extra_keys", "group_idx",
    ),
    "BlockRemoved": ("block_hashes", "medium", "group_idx"),
    "AllBlocksCleared": (),
}  # fmt: skip
"""Field order of events that come as arrays."""

_ABSENT = object()
_decoder = msgspec.msgpack.Decoder()


class MessageError(ValueError):
    """A message that is no KV-event message at all."""


@dataclass(frozen=True, slots=True)
class KVEventBatch:
    """One payload. timestamp: when the server sent it, in seconds since 1970, or None when it does not say.
    num_skipped: events that were unknown or malformed, and blocks beyond the limits."""

    timestamp: float | None
    rank: int | None
    events: tuple[Event, ...]
    num_skipped: int


def decode_payload(payload: bytes, step: int) -> KVEventBatch:
    """The events of a payload, stamped with `step`. Raises MessageError when it cannot be read."""
    if len(payload) > MAX_PAYLOAD:
        raise MessageError(
            _("The message has {num_payload} bytes; the limit is {max_payload}.").format(
                num_payload=len(payload), max_payload=MAX_PAYLOAD
            )
        )
    try:
        message = _decoder.decode(payload)
    except (msgspec.MsgspecError, RecursionError, ValueError) as error:
        raise MessageError(_("The message is not msgpack: {error}").format(error=error)) from None
    timestamp, raw_events, raw_rank = _parts(message)
    rank = _rank(raw_rank)
    events, num_skipped = _collect(raw_events, step, rank)
    return KVEventBatch(_timestamp(timestamp), rank, events, num_skipped)


def _parts(message: Any) -> tuple[Any, list[Any], Any]:
    if isinstance(message, Mapping):
        message = [message.get("ts"), message.get("events"), message.get("data_parallel_rank")]
    if not isinstance(message, list) or len(message) < 2 or not isinstance(message[1], list):
        raise MessageError(_("The message is not [timestamp, [events], rank]."))
    return message[0], message[1], message[2] if len(message) > 2 else None


def _collect(raw_events: list[Any], step: int, rank: int | None) -> tuple[tuple[Event, ...], int]:
    events: list[Event] = []
    num_skipped = 0
    for raw in raw_events:
        try:
            new = list(_events_of(raw, step, rank))
        except ValueError:
            new = []
            num_skipped += 1
        room = MAX_BLOCKS_A_MESSAGE - len(events)
        events += new[:room]
        num_skipped += max(len(new) - room, 0)
    return tuple(events), num_skipped


def _events_of(raw: Any, step: int, rank: int | None) -> Iterator[Event]:
    """The events of one published event: one a block. Raises ValueError when it is unknown or wrong."""
    kind, fields = _named(raw)
    if kind == "AllBlocksCleared":
        yield AllBlocksCleared(step, rank)
        return
    hashes = [_hash(value) for value in _list(fields.get("block_hashes"))]
    medium, group_idx = _medium(fields.get("medium")), _small_int(fields.get("group_idx"))
    if kind == "BlockRemoved":
        yield from (BlockRemoved(step, None, block_hash, rank, medium, group_idx) for block_hash in hashes)
        return
    parent, size = _parent(fields.get("parent_block_hash", _ABSENT)), _block_size(fields.get("block_size"))
    token_ids = _token_ids(fields.get("token_ids"))
    for index, block_hash in enumerate(hashes):
        tokens = token_ids[index * size : (index + 1) * size]
        yield BlockStored(step, None, block_hash, parent, tokens, size, None, None, rank, medium, group_idx)
        parent = block_hash


def _named(raw: Any) -> tuple[str, Mapping[str, Any]]:
    """Type and fields of an event in either form."""
    if isinstance(raw, Mapping):
        kind = raw.get("type")
        fields: Mapping[str, Any] = raw
    elif isinstance(raw, list) and raw:
        kind = raw[0]
        fields = dict(zip(_FIELDS.get(kind, ()) if isinstance(kind, str) else (), raw[1:], strict=False))
    else:
        raise ValueError(_("neither an array nor a map"))
    if not isinstance(kind, str) or kind not in _FIELDS:
        raise ValueError(_("unknown type"))
    return kind, fields


def _list(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise ValueError(_("not a list"))
    return value


def _hash(value: Any) -> BlockHash:
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) <= 2**64:
        return value
    if isinstance(value, bytes) and 0 < len(value) <= MAX_HASH_BYTES:
        return value.hex()
    raise ValueError(_("not a hash"))


def _parent(value: Any) -> BlockHash | None:
    if value is _ABSENT:
        raise ValueError(_("no parent named"))
    return None if value is None else _hash(value)


def _token_ids(value: Any) -> tuple[int, ...]:
    """The tokens, or none when they are not plain ids (some servers publish pairs): unknown, not guessed."""
    is_plain = isinstance(value, list) and all(type(token) is int and 0 <= token < 2**32 for token in value)
    return tuple(value) if is_plain else ()


def _block_size(value: Any) -> int:
    size = _small_int(value)
    if size is None or not 1 <= size <= MAX_BLOCK_SIZE:
        raise ValueError(_("no block size"))
    return size


def _medium(value: Any) -> str | None:
    return value[:32] if isinstance(value, str) else None


def _small_int(value: Any) -> int | None:
    return value if type(value) is int and abs(value) < 2**31 else None


def _rank(value: Any) -> int | None:
    if value is None:
        return None
    if type(value) is not int or not 0 <= value < MAX_RANKS:
        raise MessageError(
            _("The data-parallel rank is not a number from 0 to {max_ranks}.").format(max_ranks=MAX_RANKS - 1)
        )
    return value


def _timestamp(value: Any) -> float | None:
    is_time = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    return float(value) if is_time and 0 < value < LATEST_TIMESTAMP else None
