"""rotary_write_kv in plain PyTorch (interface: kernels.interface.RotaryWriteKv)."""

import torch
from torch import Tensor


def rotary_write_kv(
    qkv: Tensor, cos: Tensor, sin: Tensor, key_cache: Tensor, value_cache: Tensor, slot_mapping: Tensor
) -> Tensor:
    """See kernels.interface.RotaryWriteKv."""
    num_kv_heads = key_cache.shape[2]
    turned, value = qkv[:, :-num_kv_heads].float(), qkv[:, -num_kv_heads:]
    first, second = turned.chunk(2, dim=-1)
    cos, sin = cos[:, None], sin[:, None]
    turned = torch.cat([first * cos - second * sin, second * cos + first * sin], dim=-1)
    _write_kv(turned[:, -num_kv_heads:], value, key_cache, value_cache, slot_mapping)
    return turned[:, :-num_kv_heads].to(qkv.dtype)


def _write_kv(key: Tensor, value: Tensor, key_cache: Tensor, value_cache: Tensor, slot_mapping: Tensor) -> None:
    """Store `key` and `value` [num_tokens, num_kv_heads, head_dim] in their slots; a slot of -1 skips its token."""
    written = slot_mapping >= 0
    slots = slot_mapping[written]
    # A view, so that the assignment reaches the cache itself; view() refuses where that would need a copy.
    key_cache.view(-1, *key_cache.shape[2:])[slots] = key[written].to(key_cache.dtype)
    value_cache.view(-1, *value_cache.shape[2:])[slots] = value[written].to(value_cache.dtype)
