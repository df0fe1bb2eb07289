"""rotary_write_kv for the CPU, in Numba (interface: kernels.interface.RotaryWriteKv)."""

import numpy as np
import torch
from torch import Tensor

from kernels.numba_intrinsics import cached_flat_view, compiled, flat_view, narrow, widen

# Numba takes the types of what it compiles from the arguments of the first call.
# mypy: disable-error-code="no-untyped-def"


def rotary_write_kv(
    qkv: Tensor, cos: Tensor, sin: Tensor, key_cache: Tensor, value_cache: Tensor, slot_mapping: Tensor
) -> Tensor:
    """See kernels.interface.RotaryWriteKv."""
    num_tokens, all_heads, head_dim = qkv.shape
    num_kv_heads = key_cache.shape[2]
    query = torch.empty(num_tokens, all_heads - 2 * num_kv_heads, head_dim, dtype=qkv.dtype)
    rotate_and_store(
        flat_view(qkv.contiguous()), cached_flat_view(cos), cached_flat_view(sin), cached_flat_view(key_cache),
        cached_flat_view(value_cache),
        slot_mapping.numpy(), query.shape[1], num_kv_heads, head_dim, flat_view(query),
    )  # fmt: skip
    return query


@compiled()
def rotate_and_store(
    qkv,  # [num_tokens * (num_heads + 2 * num_kv_heads) * head_dim]
    cos,  # [num_tokens * head_dim / 2] float32
    sin,  # [num_tokens * head_dim / 2] float32
    key_cache,  # [num_slots * num_kv_heads * head_dim]
    value_cache,  # [num_slots * num_kv_heads * head_dim]
    slot_mapping,  # [num_tokens] int64, -1 skips the cache
    num_heads,
    num_kv_heads,
    head_dim,
    query,  # [num_tokens * num_heads * head_dim]
):
    """rotary_write_kv for compiled callers: tensors are flat arrays."""
    num_heads, num_kv_heads, head_dim = np.uintp(num_heads), np.uintp(num_kv_heads), np.uintp(head_dim)
    row_size = (num_heads + num_kv_heads + num_kv_heads) * head_dim
    kv_size = num_kv_heads * head_dim
    for t in range(len(slot_mapping)):
        token = np.uintp(t)
        row, angles = token * row_size, token * (head_dim // np.uintp(2))
        for head in range(num_heads):
            target = (token * num_heads + head) * head_dim
            _rotate(qkv, row + head * head_dim, cos, sin, angles, query, target, head_dim)
        if slot_mapping[t] < 0:
            continue
        slot = np.uintp(slot_mapping[t]) * kv_size
        keys = row + num_heads * head_dim
        for head in range(num_kv_heads):
            _rotate(qkv, keys + head * head_dim, cos, sin, angles, key_cache, slot + head * head_dim, head_dim)
        values = keys + kv_size
        for i in range(kv_size):
            value_cache[slot + i] = narrow(value_cache[slot + i], widen(qkv[values + i]))


@compiled()
def _rotate(source, at, cos, sin, angles, target, to, head_dim):
    """Rotary embedding of one head, half-split: source[at : at + head_dim] to target[to : to + head_dim]."""
    half = head_dim // np.uintp(2)
    for i in range(half):
        c, s = cos[angles + i], sin[angles + i]
        first, second = widen(source[at + i]), widen(source[at + half + i])
        target[to + i] = narrow(target[to + i], first * c - second * s)
        target[to + half + i] = narrow(target[to + half + i], second * c + first * s)
