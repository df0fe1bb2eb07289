"""copy_blocks for the CPU, in Numba (interface: kernels.interface.CopyBlocks).

Straight from block to block; indexing in PyTorch would copy every block twice, through a temporary.
"""

# Numba takes the types of what it compiles from the arguments of the first call.
# mypy: disable-error-code="no-untyped-def"

from collections.abc import Sequence

from torch import Tensor

from kernels.numba_intrinsics import compiled, flat_view


def copy_blocks(caches: Sequence[Tensor], src_to_dst: Tensor) -> None:
    """See kernels.interface.CopyBlocks."""
    pairs = src_to_dst.numpy()
    for cache in caches:
        _copy_rows(flat_view(cache), pairs, cache[0].numel())


@compiled()
def _copy_rows(cache, pairs, size):
    """cache [num_blocks * size]; pairs [n, 2] int64 of source and destination."""
    for i in range(len(pairs)):
        src, dst = pairs[i, 0], pairs[i, 1]
        cache[dst * size : (dst + 1) * size] = cache[src * size : (src + 1) * size]
