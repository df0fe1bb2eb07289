"""bf16_gemm in plain PyTorch: what it means. The definition, not the way to run it."""

from torch import Tensor


def bf16_gemm(x: Tensor, weight: Tensor) -> Tensor:
    """`x @ weight.T`, both rounded to bfloat16, summed in float32: [num_tokens, rows] float32.

    `x` [num_tokens, columns]; `weight` [rows, columns].
    """
    return x.bfloat16().float() @ weight.bfloat16().float().T
