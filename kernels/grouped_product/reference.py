"""grouped_product in plain PyTorch: what the packed numbers mean. The definition, not the way to run it."""

import torch
from torch import Tensor

GROUP = 32
"""Columns that share a scale."""


def round_to_sixteen_bits(x: Tensor) -> tuple[Tensor, Tensor]:
    """Each group of x as whole numbers and a scale: the largest magnitude becomes 127 * 256.

    [num_tokens, columns] -> [num_tokens, groups, 32] int32 and [num_tokens, groups] float32.
    """
    grouped = x.float().view(len(x), x.shape[1] // GROUP, GROUP)
    scale = grouped.abs().amax(-1) / (127 * 256)
    whole = torch.where(scale[..., None] > 0, grouped / scale[..., None], 0).round()
    return whole.to(torch.int32), scale


def grouped_product(x: Tensor, q: Tensor, scale: Tensor, minimum: Tensor) -> Tensor:
    """`x @ (q * scale + minimum).T` with x rounded to sixteen bits: [num_tokens, rows] float32.

    `x` [num_tokens, columns]; `q` [rows, groups, 32], whole numbers of 0 .. 255; `scale`, `minimum` [rows, groups].
    """
    whole, x_scale = round_to_sixteen_bits(x)
    weight = q.float() * scale.float()[..., None] + minimum.float()[..., None]
    return (whole.float() * x_scale[..., None]).flatten(1) @ weight.flatten(1).T
