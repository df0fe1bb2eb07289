"""swap_blocks in plain PyTorch, for every backend (interface: kernels.interface.SwapBlocks).

Index operations are already the right shape for this: gather the source blocks into one staging tensor, cross
the bus once, scatter into the destination. A kernel of our own could only replace the gather and the scatter,
which are small beside the crossing.
"""

from torch import Tensor


def swap_blocks(src_cache: Tensor, dst_cache: Tensor, src_to_dst: Tensor) -> None:
    src, dst = src_to_dst.unbind(1)
    moved = src_cache.index_select(0, src.to(src_cache.device)).to(dst_cache.device)
    # index_copy_ writes into dst_cache; `dst_cache[dst].copy_(moved)` would fill a temporary and change nothing.
    dst_cache.index_copy_(0, dst.to(dst_cache.device), moved)
