"""copy_blocks in plain PyTorch (interface: kernels.interface.CopyBlocks)."""

from collections.abc import Sequence

from torch import Tensor


def copy_blocks(caches: Sequence[Tensor], src_to_dst: Tensor) -> None:
    """See kernels.interface.CopyBlocks."""
    for cache in caches:
        pairs = src_to_dst.to(cache.device)
        cache[pairs[:, 1]] = cache[pairs[:, 0]]
