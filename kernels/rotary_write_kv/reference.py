"""rotary_write_kv in plain PyTorch (interface: kernels.interface.RotaryWriteKv)."""

import torch
from torch import Tensor

from kernels.write_kv.reference import write_kv


def rotary_write_kv(
    qkv: Tensor, cos: Tensor, sin: Tensor, key_cache: Tensor, value_cache: Tensor, slot_mapping: Tensor
) -> Tensor:
    num_kv_heads = key_cache.shape[2]
    turned, value = qkv[:, :-num_kv_heads].float(), qkv[:, -num_kv_heads:]
    first, second = turned.chunk(2, dim=-1)
    cos, sin = cos[:, None], sin[:, None]
    turned = torch.cat([first * cos - second * sin, second * cos + first * sin], dim=-1)
    write_kv(turned[:, -num_kv_heads:], value, key_cache, value_cache, slot_mapping)
    return turned[:, :-num_kv_heads].to(qkv.dtype)
