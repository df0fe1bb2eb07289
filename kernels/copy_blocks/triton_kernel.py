"""copy_blocks on a GPU, in Triton (interface: kernels.interface.CopyBlocks).

One launch serves the caches of all layers: the kernel receives their addresses as data.
"""

from collections.abc import Sequence
from functools import lru_cache
from math import gcd

import torch
import triton
import triton.language as tl
from torch import Tensor

# mypy: disable-error-code="no-untyped-def,untyped-decorator"
# ruff: noqa: N803

TILE = 2048
"""Elements that one program copies."""


def copy_blocks(caches: Sequence[Tensor], src_to_dst: Tensor) -> None:
    """See kernels.interface.CopyBlocks."""
    if not caches or not len(src_to_dst):
        return
    first = caches[0]
    addresses = tuple(cache.data_ptr() for cache in caches)
    block_elements = first[0].numel()
    grid = (len(caches), len(src_to_dst), triton.cdiv(block_elements, TILE))
    copy_blocks_kernel[grid](
        _on_device(addresses, first.device), src_to_dst.to(first.device), first,
        BLOCK_ELEMENTS=block_elements, ALIGNMENT=gcd(16, *addresses), TILE=TILE,
    )  # fmt: skip


@lru_cache(maxsize=16)
def _on_device(addresses: tuple[int, ...], device: torch.device) -> Tensor:
    """[num_caches] int64. An engine's caches never move, so each engine sends their addresses once."""
    return torch.tensor(addresses, dtype=torch.int64, device=device)


@triton.jit
def copy_blocks_kernel(
    address_ptr,  # [num_caches] int64, where each cache [num_blocks, BLOCK_ELEMENTS] starts
    src_to_dst_ptr,  # [num_pairs, 2] int64
    first_cache_ptr,  # the first of the caches: its element type is that of all
    BLOCK_ELEMENTS: tl.constexpr,
    ALIGNMENT: tl.constexpr,  # bytes: 16, unless a layer's blocks are no multiple of them
    TILE: tl.constexpr,
):
    """Grid: (num_caches, num_pairs, tiles of a block)."""
    cache_ptr = tl.load(address_ptr + tl.program_id(0)).to(first_cache_ptr.dtype)
    cache_ptr = tl.multiple_of(cache_ptr, ALIGNMENT)
    pair = tl.program_id(1)
    src = tl.load(src_to_dst_ptr + 2 * pair)
    dst = tl.load(src_to_dst_ptr + 2 * pair + 1)
    element = tl.program_id(2) * TILE + tl.arange(0, TILE)
    in_block = element < BLOCK_ELEMENTS
    moved = tl.load(cache_ptr + src * BLOCK_ELEMENTS + element, mask=in_block)
    tl.store(cache_ptr + dst * BLOCK_ELEMENTS + element, moved, mask=in_block)
