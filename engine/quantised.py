"""Weights in groups of 32 that share a scale: GGUF's Q4_1 and Q8_0 (ggml's block formats), as plain tensors."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from engine.linear import Int4Linear, Int8Linear

GROUP_SIZE = 32


@dataclass(frozen=True)
class FourBitGroups:
    """Q4_1: `weight = q * scale + minimum` with q in 0 .. 15.

    Byte j of a group's 16 holds element j in its low half and element j + 16 in its high half.
    """

    nibbles: Tensor  # [rows, columns / 2] uint8
    scale: Tensor  # [rows, columns / 32] float16
    minimum: Tensor  # [rows, columns / 32] float16

    def quantised(self) -> Tensor:
        """The integers q: [rows, columns] uint8."""
        rows, groups = self.scale.shape
        halves = self.nibbles.view(rows, groups, GROUP_SIZE // 2)
        return torch.cat([halves & 15, halves >> 4], dim=-1).view(rows, -1)

    def dequantised(self) -> Tensor:
        """[rows, columns] float32, exactly the numbers the file means."""
        grouped = self.quantised().view(*self.scale.shape, GROUP_SIZE).float()
        return (grouped * self.scale.float()[..., None] + self.minimum.float()[..., None]).flatten(1)

    def as_linear(self) -> Int4Linear:
        """A product that reads the four bits in place.

        torch's kernel means `(q - 8) * scale + zero`, hence zero = minimum + 8 * scale; only the rounding
        of scale and zero to bfloat16 differs from the file.
        """
        packed = torch.ops.aten._convert_weight_to_int4pack_for_cpu(self.quantised().int(), 1)
        scale = self.scale.float()
        scale_and_zero = torch.stack([scale, self.minimum.float() + 8 * scale], dim=-1)
        return Int4Linear(packed, scale_and_zero.transpose(0, 1).contiguous().bfloat16(), GROUP_SIZE)


@dataclass(frozen=True)
class EightBitGroups:
    """Q8_0: `weight = q * scale` with q in -127 .. 127."""

    quantised: Tensor  # [rows, columns] int8
    scale: Tensor  # [rows, columns / 32] float16

    def dequantised(self) -> Tensor:
        """[rows, columns] float32, exactly the numbers the file means."""
        grouped = self.quantised.view(*self.scale.shape, GROUP_SIZE).float()
        return (grouped * self.scale.float()[..., None]).flatten(1)

    def __call__(self, token_ids: Tensor) -> Tensor:
        """As a token embedding: dequantise the rows asked for, [num_tokens, columns] float32."""
        return EightBitGroups(self.quantised[token_ids], self.scale[token_ids]).dequantised()

    def as_linear(self) -> Int8Linear:
        """A product over the eight bits, requantised from a scale a group to a scale a row."""
        weight = self.dequantised()
        scale = weight.abs().amax(dim=1) / 127
        quantised = (weight / scale[:, None]).round().to(torch.int8)
        return Int8Linear(quantised, scale.bfloat16())
