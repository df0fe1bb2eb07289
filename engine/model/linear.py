"""Matrix products and token embeddings in the forms the weights come in: dense, four bits, eight bits."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from typing import Protocol

import torch
import torch.nn.functional as F
from torch import Tensor

FEW_TOKENS = 64
"""Measured on two cores with AVX-512, all matrices of the embedded model but the head, in milliseconds in four bits
and unpacked: 32 tokens 42 and 43, 64 tokens 82 and 84, 128 tokens 164 and 115, 256 tokens 325 and 157."""
HAS_NUMBA = find_spec("numba") is not None


class Linear(Protocol):
    """`x @ weight.T + bias`, with [num_tokens, in_features] in and [num_tokens, out_features] out."""

    def __call__(self, x: Tensor) -> Tensor:
        """[num_tokens, in_features] -> [num_tokens, out_features]."""
        ...


class Embedding(Protocol):
    """[num_tokens] token ids in, [num_tokens, hidden_size] out."""

    def __call__(self, token_ids: Tensor) -> Tensor:
        """[num_tokens] int64 -> [num_tokens, hidden_size]."""
        ...


@dataclass(frozen=True)
class DenseLinear:
    """`F.linear` in the type of the weights."""

    weight: Tensor  # [out_features, in_features]
    bias: Tensor | None = None  # [out_features]

    def __call__(self, x: Tensor) -> Tensor:
        """[num_tokens, in_features] -> [num_tokens, out_features] in the type of the weights."""
        return F.linear(x.to(self.weight.dtype), self.weight, self.bias)


@dataclass(frozen=True)
class OneDnnLinear:
    """bfloat16 weights in the order oneDNN wants for this CPU: measured, twice as fast as `F.linear` for few tokens."""

    packed: Tensor  # [out_features, in_features], opaque
    bias: Tensor | None = None  # [out_features]

    def __call__(self, x: Tensor) -> Tensor:
        """[num_tokens, in_features] -> [num_tokens, out_features] bfloat16."""
        product: Tensor = torch.ops.mkldnn._linear_pointwise(x.bfloat16(), self.packed, self.bias, "none", [], "")
        return product


@dataclass(frozen=True)
class Bf16GemmLinear:
    """bfloat16 weights in tiles for our own product; output in the type of the input."""

    packed: Tensor  # [out_features / 32, in_features / 2, 32, 2] bfloat16, see kernels/bf16_gemm/avx512.py

    def __call__(self, x: Tensor) -> Tensor:
        """[num_tokens, in_features] -> [num_tokens, out_features] in the type of `x`."""
        from kernels.bf16_gemm.cpu import bf16_gemm  # not at the top: Numba is optional

        return bf16_gemm(x, self.packed).to(x.dtype)


@dataclass(frozen=True)
class BatchInvariantLinear:
    """Any product, one row at a time, so that the order of its sums does not depend on the number of rows."""

    product: Linear

    def __call__(self, x: Tensor) -> Tensor:
        """[num_tokens, in_features] -> [num_tokens, out_features]."""
        # Copied, so that each row begins where memory is aligned alike.
        rows = [self.product(x[i : i + 1].clone()) for i in range(len(x))]
        return torch.cat(rows) if rows else self.product(x)


def dense_linear(weight: Tensor, bias: Tensor | None = None) -> Linear:
    """The fastest product with `weight` [out_features, in_features] and `bias` [out_features] on its device."""
    on_cpu = weight.dtype is torch.bfloat16 and weight.device.type == "cpu"
    if on_cpu and bias is None and weight.shape[0] % 32 == weight.shape[1] % 2 == 0 and has_bf16_gemm():
        from kernels.bf16_gemm.cpu import pack_tiles

        return Bf16GemmLinear(pack_tiles(weight))
    if on_cpu and torch._C._has_mkldnn and torch.ops.mkldnn._is_mkldnn_bf16_supported():
        return OneDnnLinear(torch.ops.mkldnn._reorder_linear_weight(weight), bias)
    return DenseLinear(weight, bias)


@dataclass(frozen=True)
class Float32OutputLinear:
    """Narrow weights on an NVIDIA GPU, whose sums are kept as they are, in float32, instead of being rounded.

    For the product that gives logits: bfloat16 steps by 0.125 near 20, so the largest ones would often be equal.
    """

    weight: Tensor  # [out_features, in_features] bfloat16 or float16
    bias: Tensor | None = None  # [out_features]

    def __call__(self, x: Tensor) -> Tensor:
        """[num_tokens, in_features] -> [num_tokens, out_features] float32."""
        product = torch.mm(x.to(self.weight.dtype), self.weight.T, out_dtype=torch.float32)
        return product if self.bias is None else product + self.bias


def dense_lm_head(weight: Tensor, bias: Tensor | None = None) -> Linear:
    """The product that gives logits, [vocab_size, hidden_size]: in float32 where that costs nothing."""
    # torch refuses it on AMD: "gemm input type at::BFloat16 and output type float is not supported for ROCm".
    if weight.device.type == "cuda" and torch.version.hip is None and weight.itemsize == 2:
        return Float32OutputLinear(weight, bias)
    return dense_linear(weight, bias)


@dataclass(frozen=True)
class GroupQuantizedLinear:
    """Weights of four or eight bits in groups, times activations rounded to eight bits; output in float32."""

    packed: Tensor  # [out_features / 16, groups, bytes] uint8, see kernels/int4_gemm/avx512.py

    def __call__(self, x: Tensor) -> Tensor:
        """[num_tokens, in_features] -> [num_tokens, out_features] float32."""
        from kernels.int4_gemm.cpu import int4_gemm  # not at the top: Numba is optional

        return int4_gemm(x, self.packed)


def has_int4_gemm() -> bool:
    """Whether Numba is installed and the processor has the instructions of `kernels.int4_gemm.cpu`."""
    if not HAS_NUMBA:
        return False
    from kernels.int4_gemm.avx512 import is_supported

    return is_supported()


def has_bf16_gemm() -> bool:
    """Whether Numba is installed and `kernels.bf16_gemm.cpu` is the fastest way on this processor."""
    if not HAS_NUMBA:
        return False
    from kernels.bf16_gemm.avx512 import is_supported

    return is_supported()


@dataclass(frozen=True)
class Int4Linear:
    """Weights of four bits in groups along `in_features`, multiplied as they are; output in bfloat16."""

    packed: Tensor  # [out_features, in_features / 2] uint8, in the order torch's kernel for this CPU wants
    scale_and_zero: Tensor  # [in_features / group_size, out_features, 2] bfloat16
    group_size: int

    def __call__(self, x: Tensor) -> Tensor:
        """[num_tokens, in_features] -> [num_tokens, out_features] bfloat16."""
        product: Tensor = torch.ops.aten._weight_int4pack_mm_for_cpu(
            x.bfloat16(), self.packed, self.group_size, self.scale_and_zero
        )
        return product


@dataclass(frozen=True)
class FourBitLinear:
    """Four-bit weights for few tokens and for many.

    Over few tokens the time goes into reading weights, so they stay in four bits. Over many it goes into
    arithmetic, and torch's four-bit kernel unpacks the weights again for every few tokens: unpacking them once to
    bfloat16, and forgetting them after the product, is faster. That needs Numba; without it all stays in four bits.
    """

    few: Int4Linear
    nibbles: Tensor  # [out_features, in_features / 2] uint8, as in engine/model/quantization.py

    def __call__(self, x: Tensor) -> Tensor:
        """[num_tokens, in_features] -> [num_tokens, out_features] bfloat16."""
        if len(x) <= FEW_TOKENS or not HAS_NUMBA:
            return self.few(x)
        return F.linear(x.bfloat16(), _unpacked(self.nibbles, self.few.scale_and_zero))


def _unpacked(nibbles: Tensor, scale_and_zero: Tensor) -> Tensor:
    """[out_features, in_features] bfloat16, from nibbles [out_features, in_features / 2] uint8."""
    from kernels.dequantize_int4.cpu import dequantize_int4  # Numba is imported when the first prompt needs it

    return dequantize_int4(nibbles, scale_and_zero)


@dataclass(frozen=True)
class Int8Linear:
    """Weights of eight bits as two halves of four, high ones beside low ones; output in bfloat16, for few tokens.

    Against torch's `_weight_int8pack_mm` it keeps a scale a group instead of a scale a row, and costs no more.
    """

    halves: Int4Linear  # [out_features, 2 * in_features]

    def __call__(self, x: Tensor) -> Tensor:
        """[num_tokens, in_features] -> [num_tokens, out_features] bfloat16."""
        return self.halves(torch.cat([x, x], dim=-1))


@dataclass(frozen=True)
class DenseEmbedding:
    """A token embedding in the type of the weights."""

    weight: Tensor  # [vocab_size, hidden_size]

    def __call__(self, token_ids: Tensor) -> Tensor:
        """[num_tokens] int64 -> [num_tokens, hidden_size]."""
        return F.embedding(token_ids, self.weight)
