"""silu_mul on a GPU, in Triton (interface: kernels.interface.SiluMul): one launch, no intermediate tensor."""

import torch
import triton
import triton.language as tl
from torch import Tensor

# mypy: disable-error-code="no-untyped-def,untyped-decorator"
# ruff: noqa: N803

TILE = 1024
"""Numbers that one program gates."""


def silu_mul(gate_up: Tensor) -> Tensor:
    """See kernels.interface.SiluMul."""
    num_tokens, doubled = gate_up.shape
    size = doubled // 2
    out = torch.empty(num_tokens, size, dtype=gate_up.dtype, device=gate_up.device)
    if num_tokens:
        silu_mul_kernel[(num_tokens, triton.cdiv(size, TILE))](gate_up.contiguous(), out, SIZE=size, TILE=TILE)
    return out


@triton.jit
def silu_mul_kernel(
    gate_up_ptr,  # [num_tokens, 2 * SIZE]: gates, ups
    out_ptr,  # [num_tokens, SIZE]
    SIZE: tl.constexpr,
    TILE: tl.constexpr,
):
    """Grid: (num_tokens, tiles of a row)."""
    token = tl.program_id(0).to(tl.int64)
    column = tl.program_id(1) * TILE + tl.arange(0, TILE)
    in_row = column < SIZE
    source = gate_up_ptr + token * (2 * SIZE) + column
    gate = tl.load(source, mask=in_row, other=0.0).to(tl.float32)
    up = tl.load(source + SIZE, mask=in_row, other=0.0).to(tl.float32)
    # The exponential of a very negative gate is infinite, and the gate over it zero.
    gated = gate / (1.0 + tl.exp(-gate)) * up
    tl.store(out_ptr + token * SIZE + column, gated.to(out_ptr.dtype.element_ty), mask=in_row)
