"""write_kv in plain PyTorch (interface: kernels.interface.WriteKv)."""

from torch import Tensor


def write_kv(
    key: Tensor, value: Tensor, key_cache: Tensor, value_cache: Tensor, slot_mapping: Tensor
) -> None:
    written = slot_mapping >= 0
    slots = slot_mapping[written]
    # A view, so that the assignment reaches the cache itself; view() refuses where that would need a copy.
    key_cache.view(-1, *key_cache.shape[2:])[slots] = key[written].to(key_cache.dtype)
    value_cache.view(-1, *value_cache.shape[2:])[slots] = value[written].to(value_cache.dtype)
