"""Blocks of keys and values: copied, swapped, moved, refused when they cannot fit."""

from __future__ import annotations

import pytest
import torch

from engine.model import kv_store as kv_store_module
from engine.model.kv_store import KVStore
from tests.helpers.models import loaded, new_kv_store


@pytest.fixture
def store() -> KVStore:
    """Six device blocks of three slots, each block filled with its own numbers; four empty CPU blocks."""
    store = new_kv_store(loaded("tiny-random"), num_blocks=6, block_size=3, num_cpu_blocks=4)
    numbers = torch.arange(store.key_cache.numel(), dtype=torch.float32).view_as(store.key_cache)
    store.key_cache.copy_(numbers)
    store.value_cache.copy_(-numbers)
    return store


def test_shapes_and_bytes(store: KVStore) -> None:
    assert store.key_cache.shape == store.value_cache.shape == (2, 6, 3, 2, 16)
    assert store.cpu_key_cache.shape == store.cpu_value_cache.shape == (2, 4, 3, 2, 16)
    assert store.nbytes == 2 * 2 * 6 * 3 * 2 * 16 * 4


def test_a_layer_is_a_view(store: KVStore) -> None:
    key_cache, value_cache = store.layer(1)
    key_cache[4, 2] = 7.0
    value_cache[4, 2] = 8.0
    assert torch.equal(store.key_cache[1, 4, 2], torch.full((2, 16), 7.0))
    assert torch.equal(store.value_cache[1, 4, 2], torch.full((2, 16), 8.0))
    assert (store.key_cache == 7.0).sum() == 32 + 1  # that slot, and the number seven elsewhere


def test_copy_block_copies_every_layer_and_nothing_else(store: KVStore) -> None:
    before = store.key_cache.clone()
    store.copy_block(src=1, dst=4)
    expected = before.clone()
    expected[:, 4] = before[:, 1]
    assert torch.equal(store.key_cache, expected)
    assert torch.equal(store.value_cache, -expected)


def test_swapped_blocks_survive_overwriting(store: KVStore) -> None:
    keys, values = store.key_cache.clone(), store.value_cache.clone()
    store.swap_out([(5, 0), (2, 3)])
    store.key_cache.fill_(torch.nan)
    store.value_cache.fill_(torch.nan)
    store.swap_in([(3, 0), (0, 1)])
    assert torch.equal(store.key_cache[:, 0], keys[:, 2]) and torch.equal(store.key_cache[:, 1], keys[:, 5])
    assert torch.equal(store.value_cache[:, 0], values[:, 2]) and torch.equal(store.value_cache[:, 1], values[:, 5])
    assert store.key_cache[:, 2:].isnan().all()


def test_permute_moves_the_data_of_block_i_to_its_new_id(store: KVStore) -> None:
    keys, values = store.key_cache.clone(), store.value_cache.clone()
    address = store.key_cache.data_ptr()
    permutation = [2, 0, 1, 5, 4, 3]
    store.permute(permutation)
    assert store.key_cache.data_ptr() == address
    for old, new in enumerate(permutation):
        assert torch.equal(store.key_cache[:, new], keys[:, old])
        assert torch.equal(store.value_cache[:, new], values[:, old])


@pytest.mark.parametrize("permutation", [[0, 1, 2, 3, 4], [0, 0, 1, 2, 3, 4], [1, 2, 3, 4, 5, 6]])
def test_an_invalid_permutation_moves_nothing(store: KVStore, permutation: list[int]) -> None:
    before = store.key_cache.clone()
    with pytest.raises(ValueError, match="each of the 6 blocks exactly once"):
        store.permute(permutation)
    assert torch.equal(store.key_cache, before)


@pytest.mark.parametrize("where", ["num_blocks", "num_cpu_blocks"])
def test_a_pool_that_cannot_fit_is_refused_with_its_size(where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kv_store_module, "available_memory", lambda _device: 2**30)
    with pytest.raises(MemoryError) as refusal:
        new_kv_store(loaded("tiny-random"), block_size=256, **{where: 50_000})  # type: ignore[arg-type]
    # 50,000 blocks x 256 tokens x 512 bytes (2 tensors, 2 layers, 2 heads, 16 numbers of 4 bytes)
    assert str(refusal.value) == (
        "50000 blocks of 256 tokens would need 6.1 GiB for keys and values, but only 1.0 GiB is free on cpu. "
        "Choose fewer or smaller blocks."
    )
