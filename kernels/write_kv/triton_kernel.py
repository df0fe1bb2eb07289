"""write_kv on a GPU, in Triton (interface: kernels.interface.WriteKv). One program stores one token."""

import triton
import triton.language as tl
from torch import Tensor

# mypy: disable-error-code="no-untyped-def,untyped-decorator"
# ruff: noqa: N803


def write_kv(
    key: Tensor, value: Tensor, key_cache: Tensor, value_cache: Tensor, slot_mapping: Tensor
) -> None:
    num_tokens, num_kv_heads, head_dim = key.shape
    row_size = num_kv_heads * head_dim
    # Keys and values may be slices of one merged product: each token's row whole, the rows apart.
    key, value = key.reshape(num_tokens, row_size), value.reshape(num_tokens, row_size)
    if num_tokens:
        write_kv_kernel[(num_tokens,)](
            key, value, key_cache, value_cache, slot_mapping, key.stride(0), value.stride(0),
            ROW_SIZE=row_size, PADDED_ROW=triton.next_power_of_2(row_size),
        )  # fmt: skip


@triton.jit
def write_kv_kernel(
    key_ptr,  # [num_tokens, ROW_SIZE], rows key_stride apart; ROW_SIZE = num_kv_heads * head_dim
    value_ptr,  # [num_tokens, ROW_SIZE], rows value_stride apart
    key_cache_ptr,  # [num_blocks * block_size, ROW_SIZE]
    value_cache_ptr,  # [num_blocks * block_size, ROW_SIZE]
    slot_mapping_ptr,  # [num_tokens] int64, -1 to skip
    key_stride,
    value_stride,
    ROW_SIZE: tl.constexpr,
    PADDED_ROW: tl.constexpr,
):
    """Grid: (num_tokens,)."""
    token = tl.program_id(0).to(tl.int64)
    slot = tl.load(slot_mapping_ptr + token)
    if slot < 0:
        return
    element = tl.arange(0, PADDED_ROW)
    in_row = element < ROW_SIZE
    key = tl.load(key_ptr + token * key_stride + element, mask=in_row)
    value = tl.load(value_ptr + token * value_stride + element, mask=in_row)
    stored = slot * ROW_SIZE + element
    tl.store(key_cache_ptr + stored, key.to(key_cache_ptr.dtype.element_ty), mask=in_row)
    tl.store(value_cache_ptr + stored, value.to(value_cache_ptr.dtype.element_ty), mask=in_row)
