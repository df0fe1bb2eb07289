"""Matrix products and token embeddings in the forms the weights come in: dense, four bits, eight bits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import torch
import torch.nn.functional as F
from torch import Tensor


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
        return F.linear(x, self.weight, self.bias)


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
class Int8Linear:
    """Weights of eight bits as two halves of four, high ones beside low ones; output in bfloat16.

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
