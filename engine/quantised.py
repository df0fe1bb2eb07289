"""Weights in groups of 32 that share a scale: GGUF's Q4_1 and Q8_0 (ggml's block formats), as plain tensors.

Whole matrices are unpacked a few rows at a time: touching fresh memory for intermediate results costs more than
the arithmetic does.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from engine.linear import Int4Linear, Int8Linear

GROUP_SIZE = 32
ROWS_AT_A_TIME = 512


@dataclass(frozen=True)
class FourBitGroups:
    """Q4_1: `weight = q * scale + minimum` with q in 0 .. 15.

    Byte j of a group's 16 holds element j in its low half and element j + 16 in its high half.
    """

    nibbles: Tensor  # [rows, columns / 2] uint8
    scale: Tensor  # [rows, columns / 32] float16
    minimum: Tensor  # [rows, columns / 32] float16

    def dequantised(self, dtype: torch.dtype = torch.float32) -> Tensor:
        """[rows, columns]: exactly the numbers the file means, rounded once to `dtype`."""
        rows, groups = self.scale.shape
        weight = torch.empty(rows, groups * GROUP_SIZE, dtype=dtype)
        for some in _row_slices(rows):
            q = self._integers(some, torch.float32)
            scale, minimum = self.scale[some].float(), self.minimum[some].float()
            weight[some] = q.mul_(scale[..., None]).add_(minimum[..., None]).flatten(1)
        return weight

    def as_linear(self) -> Int4Linear:
        """A product that reads the four bits in place.

        torch's kernel means `(q - 8) * scale + zero`, hence zero = minimum + 8 * scale; only the rounding
        of scale and zero to bfloat16 differs from the file.
        """
        q = self._integers(slice(None), torch.int32).flatten(1)
        scale = self.scale.float()
        scale_and_zero = torch.stack([scale, self.minimum.float() + 8 * scale], dim=-1)
        return Int4Linear(
            packed=torch.ops.aten._convert_weight_to_int4pack_for_cpu(q, 1),
            scale_and_zero=scale_and_zero.bfloat16().transpose(0, 1).contiguous(),
            group_size=GROUP_SIZE,
        )

    def _integers(self, rows: slice, dtype: torch.dtype) -> Tensor:
        """The numbers q of some rows: [rows, groups, 32]."""
        halves = self.nibbles[rows].view(-1, self.scale.shape[1], GROUP_SIZE // 2)
        q = torch.empty(*halves.shape[:2], GROUP_SIZE, dtype=dtype)
        q[..., : GROUP_SIZE // 2] = halves & 15
        q[..., GROUP_SIZE // 2 :] = halves >> 4
        return q


@dataclass(frozen=True)
class EightBitGroups:
    """Q8_0: `weight = q * scale` with q in -127 .. 127. Also the token embedding of a model kept in few bits."""

    quantised: Tensor  # [rows, columns] int8
    scale: Tensor  # [rows, columns / 32] float16

    def dequantised(self, dtype: torch.dtype = torch.float32) -> Tensor:
        """[rows, columns]: exactly the numbers the file means, rounded once to `dtype`."""
        weight = torch.empty(self.quantised.shape, dtype=dtype)
        for some in _row_slices(len(weight)):
            weight[some] = self._rows(some)
        return weight

    def as_linear(self) -> Int8Linear:
        """A product over eight bits, requantised from a scale a group to a scale a row."""
        quantised = torch.empty_like(self.quantised)
        row_scale = torch.empty(len(quantised), dtype=torch.float32)
        for some in _row_slices(len(quantised)):
            weight = self._rows(some)
            row_scale[some] = weight.abs().amax(dim=1) / 127
            quantised[some] = weight.div_(row_scale[some, None]).round_().to(torch.int8)
        return Int8Linear(quantised, row_scale.bfloat16())

    def __call__(self, token_ids: Tensor) -> Tensor:
        """As a token embedding: [num_tokens] -> [num_tokens, columns] float32."""
        return self._rows(token_ids)

    def _rows(self, rows: slice | Tensor) -> Tensor:
        """Some rows in float32."""
        grouped = self.quantised[rows].view(-1, self.scale.shape[1], GROUP_SIZE).float()
        return grouped.mul_(self.scale[rows].float()[..., None]).flatten(1)


def _row_slices(rows: int) -> Iterator[slice]:
    return (slice(start, start + ROWS_AT_A_TIME) for start in range(0, rows, ROWS_AT_A_TIME))
