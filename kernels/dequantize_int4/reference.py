"""dequantize_int4 in plain PyTorch. It makes several passes over memory: the definition, not the way to run it."""

import torch
from torch import Tensor


def dequantize_int4(nibbles: Tensor, scale_and_zero: Tensor) -> Tensor:
    """`(q - 8) * scale + zero`, computed in float32 and rounded once: [rows, columns] bfloat16.

    `nibbles` [rows, columns / 2] uint8: byte j of a group's 16 holds q of element j in its low half and of element
    j + 16 in its high half. `scale_and_zero` [columns / 32, rows, 2] bfloat16.
    """
    groups, rows, _ = scale_and_zero.shape
    halves = nibbles.view(rows, groups, 16)
    q = torch.cat([halves & 15, halves >> 4], dim=-1).float()
    scale, zero = scale_and_zero.float().transpose(0, 1)[..., None, :].unbind(-1)
    return ((q - 8) * scale + zero).bfloat16().flatten(1)
