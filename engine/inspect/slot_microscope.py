"""Everything about one slot of a live engine: its token, who reads it, its address in real numbers, its real numbers.

Only reads. A page asks between two steps.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from engine.engine import Engine
from engine.i18n import _
from engine.model.kv_store import KVStore
from engine.trace.state import BlockState, CacheState, SlotContent
from engine.trace.usage import SlotAddress, address_of


@dataclass(frozen=True, slots=True)
class TensorPlace:
    """Where a vector [head_dim] starts in `key_cache` (and, at the same place, in `value_cache`).

    `index`: (layer, block_id, offset, kv_head, 0) into a tensor of `shape`
    [num_layers, num_blocks, block_size, num_kv_heads, head_dim]. `strides` count elements.
    `element_offset` = sum of index * stride; `byte_offset` = element_offset * itemsize, from the tensor's first byte.
    """

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    index: tuple[int, ...]
    dtype: str
    itemsize: int
    element_offset: int
    byte_offset: int
    num_bytes: int


@dataclass(frozen=True, slots=True)
class SlotView:
    """`readers`: every sequence whose table leads here, with the arithmetic that does (`usage.SlotAddress`).

    `content` is the token whose keys and values are there, None in a slot never written. `is_stale`: they are
    leftovers that no table leads to. `key`, `value`: the real numbers for one layer and head.
    """

    slot: int
    block_id: int
    offset: int
    block_status: str
    ref_cnt: int
    content: SlotContent | None
    is_stale: bool
    readers: tuple[SlotAddress, ...]
    request_ids: tuple[str, ...]
    place: TensorPlace
    key: tuple[float, ...]
    value: tuple[float, ...]


def look_at_slot(engine: Engine, slot: int, layer: int, kv_head: int) -> SlotView:
    """Raises IndexError for a slot, layer or head that is not there, ValueError when the engine keeps no numbers."""
    store = engine.components.store
    if not isinstance(store, KVStore):
        raise ValueError(_("This engine stores no keys and values: its text comes from a script."))
    state = engine.snapshot()
    num_layers, num_blocks, block_size, num_kv_heads, _head_dim = store.key_cache.shape
    _require_within("slot", slot, num_blocks * block_size)
    _require_within("layer", layer, num_layers)
    _require_within("KV head", kv_head, num_kv_heads)
    block_id, offset = divmod(slot, block_size)
    block = state.blocks[block_id]
    readers = tuple(_readers(state, block, offset))
    return SlotView(
        slot=slot,
        block_id=block_id,
        offset=offset,
        block_status=block.status,
        ref_cnt=block.ref_cnt,
        content=block.slots[offset],
        is_stale=block.slots[offset] is not None and not readers,
        readers=readers,
        request_ids=tuple(dict.fromkeys(state.sequences[reader.seq_id].request_id for reader in readers)),
        place=_place(store, (layer, block_id, offset, kv_head, 0)),
        key=tuple(store.key_cache[layer, block_id, offset, kv_head].float().tolist()),
        value=tuple(store.value_cache[layer, block_id, offset, kv_head].float().tolist()),
    )


def place_in_words(place: TensorPlace) -> str:
    """The offset, with the numbers: index times stride, summed, times the size of an element."""
    terms = " + ".join(f"{i} * {stride}" for i, stride in zip(place.index[:-1], place.strides, strict=False))
    return f"({terms}) * {place.itemsize} bytes = byte {place.byte_offset}"


def _readers(state: CacheState, block: BlockState, offset: int) -> Iterator[SlotAddress]:
    for seq_id, logical_index in block.owners.items():
        position = logical_index * state.block_size + offset
        if position < state.sequences[seq_id].num_computed_tokens:
            yield address_of(state, seq_id, position)


def _place(store: KVStore, index: tuple[int, ...]) -> TensorPlace:
    cache = store.key_cache
    element_offset = sum(i * stride for i, stride in zip(index, cache.stride(), strict=True))
    return TensorPlace(
        shape=tuple(cache.shape),
        strides=tuple(cache.stride()),
        index=index,
        dtype=str(cache.dtype).removeprefix("torch."),
        itemsize=cache.itemsize,
        element_offset=element_offset,
        byte_offset=element_offset * cache.itemsize,
        num_bytes=cache.shape[-1] * cache.itemsize,
    )


def _require_within(what: str, number: int, count: int) -> None:
    if not 0 <= number < count:
        raise IndexError(
            _("There is no {what} {number}: they are 0 to {count}.").format(what=what, number=number, count=count - 1)
        )
