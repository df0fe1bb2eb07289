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

    def __call__(self, x: Tensor) -> Tensor: ...


class Embedding(Protocol):
    """[num_tokens] token ids in, [num_tokens, hidden_size] out."""

    def __call__(self, token_ids: Tensor) -> Tensor: ...


@dataclass(frozen=True)
class DenseLinear:
    weight: Tensor  # [out_features, in_features]
    bias: Tensor | None = None  # [out_features]

    def __call__(self, x: Tensor) -> Tensor:
        return F.linear(x.to(self.weight.dtype), self.weight, self.bias)


@dataclass(frozen=True)
class PackedLinear:
    """bfloat16 weights in the order oneDNN wants for this CPU: measured, twice as fast as `F.linear` for few tokens."""

    packed: Tensor  # [out_features, in_features], opaque
    bias: Tensor | None = None  # [out_features]

    def __call__(self, x: Tensor) -> Tensor:
        product: Tensor = torch.ops.mkldnn._linear_pointwise(x.bfloat16(), self.packed, self.bias, "none", [], "")
        return product


@dataclass(frozen=True)
class TiledLinear:
    """bfloat16 weights in tiles for our own product; output in the type of the input."""

    packed: Tensor  # [out_features / 32, in_features / 2, 32, 2] bfloat16, see kernels/tiled_product/bf16.py

    def __call__(self, x: Tensor) -> Tensor:
        from kernels.tiled_product.cpu import tiled_product  # Numba is there: these weights were packed for it

        return tiled_product(x, self.packed).to(x.dtype)


def dense_linear(weight: Tensor, bias: Tensor | None = None) -> Linear:
    """The fastest product with a dense matrix where it lies."""
    on_cpu = weight.dtype is torch.bfloat16 and weight.device.type == "cpu"
    if on_cpu and bias is None and weight.shape[0] % 32 == weight.shape[1] % 2 == 0 and has_tiled_product():
        from kernels.tiled_product.cpu import pack_tiles

        return TiledLinear(pack_tiles(weight))
    if on_cpu and torch._C._has_mkldnn and torch.ops.mkldnn._is_mkldnn_bf16_supported():
        return PackedLinear(torch.ops.mkldnn._reorder_linear_weight(weight), bias)
    return DenseLinear(weight, bias)


@dataclass(frozen=True)
class GroupedLinear:
    """Weights of four or eight bits in groups, times activations rounded to eight bits; output in float32."""

    packed: Tensor  # [out_features / 16, groups, bytes] uint8, see kernels/grouped_product/vnni.py

    def __call__(self, x: Tensor) -> Tensor:
        from kernels.grouped_product.cpu import grouped_product  # Numba is there: these weights were packed for it

        return grouped_product(x, self.packed)


def has_grouped_product() -> bool:
    """Whether Numba is installed and the processor has the instructions of `kernels.grouped_product.cpu`."""
    if not HAS_NUMBA:
        return False
    from kernels.grouped_product.vnni import runs_here

    return runs_here()


def has_tiled_product() -> bool:
    """Whether Numba is installed and `kernels.tiled_product.cpu` is the fastest way on this processor."""
    if not HAS_NUMBA:
        return False
    from kernels.tiled_product.bf16 import runs_here

    return runs_here()


@dataclass(frozen=True)
class Int4Linear:
    """Weights of four bits in groups along `in_features`, multiplied as they are; output in bfloat16."""

    packed: Tensor  # [out_features, in_features / 2] uint8, in the order torch's kernel for this CPU wants
    scale_and_zero: Tensor  # [in_features / group_size, out_features, 2] bfloat16
    group_size: int

    def __call__(self, x: Tensor) -> Tensor:
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
    nibbles: Tensor  # [out_features, in_features / 2] uint8, as in engine/quantised.py

    def __call__(self, x: Tensor) -> Tensor:
        """[num_tokens, in_features] -> [num_tokens, out_features] bfloat16."""
        if len(x) <= FEW_TOKENS or not HAS_NUMBA:
            return self.few(x)
        return F.linear(x.bfloat16(), _unpacked(self.nibbles, self.few.scale_and_zero))


def _unpacked(nibbles: Tensor, scale_and_zero: Tensor) -> Tensor:
    from kernels.unpack_four_bits.cpu import unpack_four_bits  # Numba is imported when the first prompt needs it

    return unpack_four_bits(nibbles, scale_and_zero)


@dataclass(frozen=True)
class Int8Linear:
    """Weights of eight bits as two halves of four, high ones beside low ones; output in bfloat16, for few tokens.

    Against torch's `_weight_int8pack_mm` it keeps a scale a group instead of a scale a row, and costs no more.
    """

    halves: Int4Linear  # [out_features, 2 * in_features]

    def __call__(self, x: Tensor) -> Tensor:
        return self.halves(torch.cat([x, x], dim=-1))


@dataclass(frozen=True)
class DenseEmbedding:
    weight: Tensor  # [vocab_size, hidden_size]

    def __call__(self, token_ids: Tensor) -> Tensor:
        return F.embedding(token_ids, self.weight)
