"""rotary_write_kv on a GPU, in Triton (interface: kernels.interface.RotaryWriteKv). One program serves one token."""

import torch
import triton
import triton.language as tl
from torch import Tensor

# mypy: disable-error-code="no-untyped-def,untyped-decorator"
# ruff: noqa: N803


def rotary_write_kv(
    qkv: Tensor, cos: Tensor, sin: Tensor, key_cache: Tensor, value_cache: Tensor, slot_mapping: Tensor
) -> Tensor:
    """See kernels.interface.RotaryWriteKv."""
    num_tokens, all_heads, head_dim = qkv.shape
    num_kv_heads = key_cache.shape[2]
    query = torch.empty(num_tokens, all_heads - 2 * num_kv_heads, head_dim, dtype=qkv.dtype, device=qkv.device)
    if num_tokens:
        rotary_write_kv_kernel[(num_tokens,)](
            qkv.contiguous(), cos, sin, slot_mapping, query, key_cache, value_cache,
            NUM_HEADS=query.shape[1], NUM_KV_HEADS=num_kv_heads, HALF=head_dim // 2, **padded(all_heads, head_dim),
        )  # fmt: skip
    return query


def padded(all_heads: int, head_dim: int) -> dict[str, int]:
    """Tile sizes: all heads of a token and half a head, rounded up to powers of two."""
    return {
        "HEADS_PADDED": triton.next_power_of_2(all_heads),
        "HALF_PADDED": triton.next_power_of_2(head_dim // 2),
        "num_warps": 4 if all_heads * head_dim <= 4096 else 8,
    }


@triton.jit
def rotary_write_kv_kernel(
    qkv_ptr,  # [num_tokens, NUM_HEADS + 2 * NUM_KV_HEADS, 2 * HALF]: queries, keys, values
    cos_ptr,  # [num_tokens, HALF] float32
    sin_ptr,  # [num_tokens, HALF] float32
    slot_mapping_ptr,  # [num_tokens] int64, -1 skips the cache
    query_ptr,  # [num_tokens, NUM_HEADS, 2 * HALF]
    key_cache_ptr,  # [num_blocks * block_size, NUM_KV_HEADS, 2 * HALF]
    value_cache_ptr,  # [num_blocks * block_size, NUM_KV_HEADS, 2 * HALF]
    NUM_HEADS: tl.constexpr,
    NUM_KV_HEADS: tl.constexpr,
    HALF: tl.constexpr,  # head_dim / 2
    HEADS_PADDED: tl.constexpr,
    HALF_PADDED: tl.constexpr,
):
    """Grid: (num_tokens,)."""
    token = tl.program_id(0).to(tl.int64)
    slot = tl.load(slot_mapping_ptr + token)
    head = tl.arange(0, HEADS_PADDED)[:, None]
    pair = tl.arange(0, HALF_PADDED)[None, :]
    in_half = pair < HALF
    in_row = (head < NUM_HEADS + 2 * NUM_KV_HEADS) & in_half
    source = qkv_ptr + token * ((NUM_HEADS + 2 * NUM_KV_HEADS) * 2 * HALF) + head * (2 * HALF) + pair
    first = tl.load(source, mask=in_row, other=0.0).to(tl.float32)
    second = tl.load(source + HALF, mask=in_row, other=0.0).to(tl.float32)
    # Values are heads too, but they are not turned: their angle is 0.
    turned = (head < NUM_HEADS + NUM_KV_HEADS) & in_half
    cos = tl.load(cos_ptr + token * HALF + pair + head * 0, mask=turned, other=1.0)
    sin = tl.load(sin_ptr + token * HALF + pair + head * 0, mask=turned, other=0.0)
    first, second = first * cos - second * sin, second * cos + first * sin

    is_query = (head < NUM_HEADS) & in_half
    target = query_ptr + (token * NUM_HEADS + head) * (2 * HALF) + pair
    tl.store(target, first.to(query_ptr.dtype.element_ty), mask=is_query)
    tl.store(target + HALF, second.to(query_ptr.dtype.element_ty), mask=is_query)
    is_key = (head >= NUM_HEADS) & turned & (slot >= 0)
    target = key_cache_ptr + (slot * NUM_KV_HEADS + head - NUM_HEADS) * (2 * HALF) + pair
    tl.store(target, first.to(key_cache_ptr.dtype.element_ty), mask=is_key)
    tl.store(target + HALF, second.to(key_cache_ptr.dtype.element_ty), mask=is_key)
    is_value = (head >= NUM_HEADS + NUM_KV_HEADS) & in_row & (slot >= 0)
    target = value_cache_ptr + (slot * NUM_KV_HEADS + head - NUM_HEADS - NUM_KV_HEADS) * (2 * HALF) + pair
    tl.store(target, first.to(value_cache_ptr.dtype.element_ty), mask=is_value)
    tl.store(target + HALF, second.to(value_cache_ptr.dtype.element_ty), mask=is_value)
