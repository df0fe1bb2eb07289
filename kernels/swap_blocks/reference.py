"""swap_blocks in plain PyTorch, for every backend (interface: kernels.interface.SwapBlocks).

Index operations are already the right shape for this: gather the source blocks of all layers into one staging tensor,
cross the bus once, scatter into the destination. A kernel of our own could only replace the gather and the scatter,
which are small beside the crossing.
"""

import torch
from torch import Tensor


def swap_blocks(src_cache: Tensor, dst_cache: Tensor, src_to_dst: Tensor) -> None:
    """See kernels.interface.SwapBlocks."""
    src, dst = src_to_dst.unbind(1)
    moved = _across(src_cache.index_select(1, src.to(src_cache.device)), dst_cache.device)
    # index_copy_ writes into dst_cache; `dst_cache[:, dst].copy_(moved)` would fill a temporary and change nothing.
    dst_cache.index_copy_(1, dst.to(dst_cache.device), moved)


def _across(blocks: Tensor, device: torch.device) -> Tensor:
    """The blocks, [num_layers, n, ...], on `device`: by pinned memory between a GPU and the CPU, which is faster."""
    if blocks.device.type == "cuda" and device.type == "cpu":
        return torch.empty_like(blocks, device=device, pin_memory=True).copy_(blocks)
    if blocks.device.type == "cpu" and device.type == "cuda":
        return blocks.pin_memory().to(device, non_blocking=True)
    return blocks.to(device)
