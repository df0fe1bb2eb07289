"""write_kv for the CPU, in Numba (interface: kernels.interface.WriteKv).

One pass, no index tensors and no masks: the few rows of a decode step are too little work to share among threads.
"""

# Numba takes the types of what it compiles from the arguments of the first call.
# mypy: disable-error-code="no-untyped-def"

from torch import Tensor

from kernels.numba_math import compiled, flat_view


def write_kv(
    key: Tensor, value: Tensor, key_cache: Tensor, value_cache: Tensor, slot_mapping: Tensor
) -> None:
    _scatter_rows(_rows(key, key_cache), flat_view(key_cache), slot_mapping.numpy())
    _scatter_rows(_rows(value, value_cache), flat_view(value_cache), slot_mapping.numpy())


def _rows(new: Tensor, cache: Tensor) -> object:
    return flat_view(new.to(cache.dtype).contiguous())


@compiled()
def _scatter_rows(rows, cache, slot_mapping):
    """rows [num_tokens * row_size] -> cache [num_slots * row_size] at slot_mapping [num_tokens]."""
    if len(slot_mapping) == 0:
        return
    size = len(rows) // len(slot_mapping)
    for token in range(len(slot_mapping)):
        slot = slot_mapping[token]
        if slot >= 0:
            cache[slot * size : (slot + 1) * size] = rows[token * size : (token + 1) * size]
