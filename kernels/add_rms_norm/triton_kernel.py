"""add_rms_norm on a GPU, in Triton (interface: kernels.interface.AddRmsNorm). One program serves one token."""

import torch
import triton
import triton.language as tl
from torch import Tensor

# mypy: disable-error-code="no-untyped-def,untyped-decorator"
# ruff: noqa: N803


def add_rms_norm(x: Tensor, residual: Tensor, weight: Tensor, eps: float) -> tuple[Tensor, Tensor]:
    """See kernels.interface.AddRmsNorm."""
    num_tokens, size = residual.shape
    dtype = torch.promote_types(x.dtype, residual.dtype)
    total = torch.empty(num_tokens, size, dtype=dtype, device=residual.device)
    out = torch.empty_like(total)
    if num_tokens:
        add_rms_norm_kernel[(num_tokens,)](
            x.contiguous(), residual.contiguous(), weight, total, out, eps, SIZE=size, **padded(size)
        )
    return out, total


def padded(size: int) -> dict[str, int]:
    """The tile, one row rounded up to a power of two, with eight to sixteen elements a thread."""
    tile = triton.next_power_of_2(size)
    return {"TILE": tile, "num_warps": min(max(tile // 512, 1), 16)}


@triton.jit
def add_rms_norm_kernel(
    x_ptr,  # [num_tokens, SIZE]
    residual_ptr,  # [num_tokens, SIZE]
    weight_ptr,  # [SIZE]
    total_ptr,  # [num_tokens, SIZE]
    out_ptr,  # [num_tokens, SIZE]
    eps,
    SIZE: tl.constexpr,
    TILE: tl.constexpr,
):
    """Grid: (num_tokens,)."""
    column = tl.arange(0, TILE)
    in_row = column < SIZE
    element = tl.program_id(0).to(tl.int64) * SIZE + column
    x = tl.load(x_ptr + element, mask=in_row, other=0.0).to(tl.float32)
    residual = tl.load(residual_ptr + element, mask=in_row, other=0.0).to(tl.float32)
    total = (residual + x).to(total_ptr.dtype.element_ty)
    tl.store(total_ptr + element, total, mask=in_row)
    # What is normalised is the sum as it is stored, rounded: the next block adds to that one.
    total = total.to(tl.float32)
    factor = tl.rsqrt(tl.sum(total * total, 0) / SIZE + eps)
    weight = tl.load(weight_ptr + column, mask=in_row, other=0.0).to(tl.float32)
    tl.store(out_ptr + element, (total * factor * weight).to(out_ptr.dtype.element_ty), mask=in_row)
