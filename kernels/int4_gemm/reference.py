"""int4_gemm in plain PyTorch: what the packed numbers mean. The definition, not the way to run it."""

import torch
from torch import Tensor

GROUP = 32
"""Columns that share a scale."""
LARGEST = 127


def quantize_activations(x: Tensor) -> tuple[Tensor, Tensor]:
    """Each group of x as whole numbers and a scale: the largest magnitude becomes 127.

    [num_tokens, columns] -> [num_tokens, groups, 32] int8 and [num_tokens, groups] float32.
    """
    grouped = x.float().view(len(x), x.shape[1] // GROUP, GROUP)
    largest = grouped.abs().amax(-1)
    factor = torch.where(largest > 0, LARGEST / largest, 0)
    return (grouped * factor[..., None]).round().to(torch.int8), largest * (1 / LARGEST)


def int4_gemm(x: Tensor, q: Tensor, scale: Tensor, minimum: Tensor) -> Tensor:
    """`x @ (q * scale + minimum).T` with x rounded to bytes: [num_tokens, rows] float32.

    `x` [num_tokens, columns]; `q` [rows, groups, 32], whole numbers of 0 .. 255; `scale`, `minimum` [rows, groups].
    """
    whole, x_scale = quantize_activations(x)
    weight = q.float() * scale.float()[..., None] + minimum.float()[..., None]
    return (whole.float() * x_scale[..., None]).flatten(1) @ weight.flatten(1).T
