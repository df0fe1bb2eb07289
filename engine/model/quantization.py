"""Weights in groups of 32 that share a scale: GGUF's Q4_1 and Q8_0 (ggml's block formats), as plain tensors.

Whole matrices are unpacked a few rows at a time: touching fresh memory for intermediate results costs more than
the arithmetic does.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from engine.model.linear import (
    FourBitLinear,
    GroupQuantizedLinear,
    Int4Linear,
    Int8Linear,
    Linear,
    dense_linear,
    has_int4_gemm,
)

GROUP_SIZE = 32
FEW_ROWS = 4
"""Measured on two cores with AVX-512, the embedded model's head in milliseconds in eight bits and dense: 1 row 1.6
and 4.4, 4 rows 2.8 and 5.0, 6 rows 5.6 and 5.2, 16 rows 11.3 and 7.0."""
ROWS_AT_A_TIME = 512  # a multiple of the 64 rows that torch packs together


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

    def as_linear(self) -> Linear:
        """A product in the four bits: with our own kernel where the processor can run it, else with torch's."""
        if not has_int4_gemm():
            return self.as_torch_linear()
        from kernels.int4_gemm.cpu import pack_int4

        return GroupQuantizedLinear(pack_int4(self.nibbles, self.scale, self.minimum))

    def as_torch_linear(self) -> FourBitLinear:
        """A product in the four bits by torch.

        torch's kernel means `(q - 8) * scale + zero`, hence zero = minimum + 8 * scale; only the rounding
        of scale and zero to bfloat16 differs from the file.
        """
        rows = _row_slices(len(self.scale))
        packed = [_packed(self._integers(some, torch.int32).flatten(1)) for some in rows]
        scale = self.scale.float()
        scale_and_zero = _for_kernel(scale, self.minimum.float() + 8 * scale)
        return FourBitLinear(Int4Linear(torch.cat(packed), scale_and_zero, GROUP_SIZE), self.nibbles)

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

    def as_torch_linear(self) -> Int8Linear:
        """A product by torch that reads the eight bits as two numbers of four: q = 16 * high + low.

        The kernel means `(stored - 8) * scale + zero`. For high in -8 .. 7, store high + 8 with 16 times the
        scale and no zero; for low in 0 .. 15, store it as it is with zero = 8 * scale.
        """
        scale = self.scale.float()
        scales = torch.cat([16 * scale, scale], dim=1)
        zeros = torch.cat([torch.zeros_like(scale), 8 * scale], dim=1)
        packed = [_packed(self._halves(some)) for some in _row_slices(len(scale))]
        return Int8Linear(Int4Linear(torch.cat(packed), _for_kernel(scales, zeros), GROUP_SIZE))

    def as_lm_head(self) -> Linear:
        """Scores of every token in float32: by our own kernel where the processor can run it, else by torch's."""
        if not has_int4_gemm():
            many = dense_linear(self.dequantised(torch.bfloat16))
            return EightBitLMHead(TokenCountDispatch(self.as_torch_linear(), many), self)
        from kernels.int4_gemm.cpu import pack_int8

        # The kernel's whole numbers have no sign: q + 128, and a minimum of -128 times the scale.
        unsigned = self.quantised.view(torch.uint8) ^ 128
        return GroupQuantizedLinear(pack_int8(unsigned, self.scale, -128 * self.scale))

    def _halves(self, rows: slice) -> Tensor:
        """High and low halves of some rows, side by side: [rows, 2 columns] int32 in 0 .. 15."""
        q = self.quantised[rows].int()
        return torch.cat([(q >> 4) + 8, q & 15], dim=1)

    def __call__(self, token_ids: Tensor) -> Tensor:
        """As a token embedding: [num_tokens] -> [num_tokens, columns] float32."""
        return self._rows(token_ids)

    def _rows(self, rows: slice | Tensor) -> Tensor:
        """Some rows dequantised: [num_rows, columns] float32."""
        grouped = self.quantised[rows].view(-1, self.scale.shape[1], GROUP_SIZE).float()
        return grouped.mul_(self.scale[rows].float()[..., None]).flatten(1)


@dataclass(frozen=True)
class TokenCountDispatch:
    """One product in two forms, each where it is the faster."""

    few: Linear
    many: Linear

    def __call__(self, x: Tensor) -> Tensor:
        """[rows, in_features] -> [rows, out_features] bfloat16."""
        x = x.bfloat16()
        return self.few(x) if len(x) <= FEW_ROWS else self.many(x)


@dataclass(frozen=True)
class EightBitLMHead:
    """Scores of every token out of products in bfloat16, and exact where it decides which is best.

    bfloat16 keeps 8 bits: scores near 20 come in steps of 0.125, and tokens that differ by less tie. Those that
    rounding could have kept from the top, a handful, are scored again in float32.
    """

    product: Linear
    weight: EightBitGroups

    def __call__(self, x: Tensor) -> Tensor:
        """[rows, hidden_size] -> [rows, vocab_size] float32."""
        scores = self.product(x).float()
        best = scores.amax(dim=-1, keepdim=True)
        row, token_id = torch.nonzero(scores >= best - best.abs() / 64, as_tuple=True)
        scores[row, token_id] = (x[row].float() * self.weight(token_id)).sum(dim=-1)
        return scores


def _row_slices(rows: int) -> Iterator[slice]:
    return (slice(start, start + ROWS_AT_A_TIME) for start in range(0, rows, ROWS_AT_A_TIME))


def _packed(q: Tensor) -> Tensor:
    """[rows, columns] int32 in 0 .. 15 -> [rows, columns / 2] uint8, in the order this CPU's kernel wants."""
    packed: Tensor = torch.ops.aten._convert_weight_to_int4pack_for_cpu(q, 1)
    return packed


def _for_kernel(scale: Tensor, zero: Tensor) -> Tensor:
    """[rows, groups] twice -> [groups, rows, 2] bfloat16."""
    return torch.stack([scale, zero], dim=-1).bfloat16().transpose(0, 1).contiguous()
