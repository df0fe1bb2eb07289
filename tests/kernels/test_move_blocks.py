"""copy_blocks and swap_blocks: whole blocks move, the others stay."""

import pytest
import torch

from kernels.backend import Backend

Target = tuple[Backend, torch.device]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=["float32", "bfloat16"])
def test_copy_blocks_copies_in_every_cache(target: Target, dtype: torch.dtype) -> None:
    backend, device = target
    caches = [torch.randn(6, 5, 3, 20).to(device, dtype) for _ in range(3)]
    expected = [cache.clone() for cache in caches]
    for cache in expected:
        cache[4], cache[0] = cache[1], cache[5]
    backend.copy_blocks(caches, torch.tensor([[1, 4], [5, 0]], device=device))
    for cache, wanted in zip(caches, expected, strict=True):
        assert torch.equal(cache, wanted)


def test_copy_of_no_blocks_changes_nothing(target: Target) -> None:
    backend, device = target
    cache = torch.arange(24.0, device=device).view(3, 2, 1, 4)
    backend.copy_blocks([cache], torch.empty(0, 2, dtype=torch.int64, device=device))
    assert torch.equal(cache.cpu(), torch.arange(24.0).view(3, 2, 1, 4))


def test_swapped_blocks_survive_overwriting(target: Target) -> None:
    """transformers' offloading copied into a temporary: the swap did nothing."""
    backend, device = target
    cache = torch.randn(2, 4, 4, 2, 8, device=device)
    before = cache.clone()
    host_pool = torch.zeros(2, 3, 4, 2, 8)
    backend.swap_blocks(cache, host_pool, torch.tensor([[2, 0], [1, 2]]))
    assert torch.equal(host_pool[:, 0], before[:, 2].cpu()) and torch.equal(host_pool[:, 2], before[:, 1].cpu())
    assert torch.equal(host_pool[:, 1], torch.zeros(2, 4, 2, 8))
    cache.fill_(torch.nan)
    backend.swap_blocks(host_pool, cache, torch.tensor([[0, 3], [2, 0]]))
    assert torch.equal(cache[:, 3], before[:, 2]) and torch.equal(cache[:, 0], before[:, 1])
    assert cache[:, 1:3].isnan().all()


def test_copy_of_blocks_whose_caches_are_not_aligned_to_sixteen_bytes(target: Target) -> None:
    """Three blocks of 20 bfloat16 numbers fill 120 bytes, so the second layer begins 8 bytes past a multiple of 16."""
    backend, device = target
    store = torch.randn(2, 3, 1, 1, 20).to(device, torch.bfloat16)
    expected = store.clone()
    expected[:, 2] = expected[:, 0]
    backend.copy_blocks(list(store), torch.tensor([[0, 2]], device=device))
    assert torch.equal(store, expected)
