"""write_kv: every backend puts each token in its slot and touches nothing else."""

import pytest
import torch

from kernels.backend import Backend

Target = tuple[Backend, torch.device]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=["float32", "bfloat16"])
@pytest.mark.parametrize("block_size, head_dim", [(1, 64), (5, 80), (16, 96)])
def test_writes_each_token_to_its_slot(
    target: Target, block_size: int, head_dim: int, dtype: torch.dtype
) -> None:
    backend, device = target
    key, value = (torch.randn(4, 3, head_dim).to(dtype) for _ in range(2))
    caches = [torch.full((20, block_size, 3, head_dim), -1.0, dtype=dtype) for _ in range(2)]
    expected = [cache.clone() for cache in caches]
    slots = [13, 2, 19, 7]
    for token, slot in enumerate(slots):
        for cache, rows in zip(expected, (key, value), strict=True):
            cache[slot // block_size, slot % block_size] = rows[token]
    on_device = [cache.to(device) for cache in caches]
    backend.write_kv(key.to(device), value.to(device), *on_device, torch.tensor(slots, device=device))
    for cache, wanted in zip(on_device, expected, strict=True):
        assert torch.equal(cache.cpu(), wanted)


def test_slot_minus_one_is_skipped(target: Target) -> None:
    """vllm 43810: slot -1 wrote the last slot."""
    backend, device = target
    key, value = torch.ones(2, 1, 64, device=device), torch.full((2, 1, 64), 2.0, device=device)
    key_cache, value_cache = (torch.zeros(2, 4, 1, 64, device=device) for _ in range(2))
    backend.write_kv(key, value, key_cache, value_cache, torch.tensor([3, -1], device=device))
    assert key_cache.sum() == 64 and value_cache.sum() == 128
    assert torch.equal(key_cache[0, 3], key[0]) and torch.equal(value_cache[0, 3], value[0])


def test_reads_keys_and_values_that_are_slices_of_one_product(target: Target) -> None:
    """A merged QKV product gives keys and values whose token rows lie apart in memory."""
    backend, device = target
    merged = torch.randn(3, 10, 64, device=device)
    key, value = merged[:, 6:8], merged[:, 8:]
    key_cache, value_cache = (torch.zeros(2, 4, 2, 64, device=device) for _ in range(2))
    backend.write_kv(key, value, key_cache, value_cache, torch.tensor([0, 5, 6], device=device))
    assert torch.equal(key_cache.view(8, 2, 64)[[0, 5, 6]], key)
    assert torch.equal(value_cache.view(8, 2, 64)[[0, 5, 6]], value)
