"""EngineConfig.batch_invariant: a token's logits are the same bits whatever else is in the batch.

A matrix product may sum in an order that depends on the number of rows. Our own products over packed weights do not;
all others run one row at a time here, and attention takes one code path for every token. Norms, rotation, gates and
softmax work on each row by itself.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any, cast

import torch
from torch import Tensor

from engine.model.linear import BatchInvariantLinear, Bf16GemmLinear, GroupQuantizedLinear, Linear
from engine.model.llama import DecoderLayer, LlamaModel
from kernels.backend import Backend


def batch_invariant_model(model: LlamaModel) -> LlamaModel:
    """The same weights, in products whose output rows do not depend on the other rows of the input."""
    return replace(model, layers=tuple(map(_layer, model.layers)), lm_head=_product(model.lm_head))


def batch_invariant_backend(backend: Backend) -> Backend:
    """A backend whose attention does not depend on the other tokens of the batch."""
    if backend.spec.takes_batch_invariant:
        one_way = partial(cast(Any, backend.paged_attention), batch_invariant=True)
        return replace(backend, paged_attention=cast(Any, one_way))
    return replace(backend, paged_attention=partial(_attend_one_by_one, backend.paged_attention))


def _layer(layer: DecoderLayer) -> DecoderLayer:
    return replace(
        layer,
        qkv=_product(layer.qkv),
        attention_output=_product(layer.attention_output),
        gate_up=_product(layer.gate_up),
        down=_product(layer.down),
    )


def _product(product: Linear) -> Linear:
    return product if isinstance(product, GroupQuantizedLinear | Bf16GemmLinear) else BatchInvariantLinear(product)


def _attend_one_by_one(
    attention: Any, query: Tensor, key_cache: Tensor, value_cache: Tensor,
    block_table: Tensor, seq_lens: Tensor, query_start_loc: Tensor, **options: Any,
) -> Any:  # fmt: skip
    """Run `attention` with each token as a sequence of its own that ends with it.

    `query` [num_tokens, num_heads, head_dim], caches and tables as in kernels/interface.py -> like `query`.
    """
    starts = torch.arange(len(query) + 1, dtype=torch.int32)
    sequence = torch.repeat_interleave(query_start_loc.diff())
    still_to_come = query_start_loc[1:][sequence] - 1 - starts[:-1]
    return attention(
        query, key_cache, value_cache, block_table[sequence], seq_lens[sequence] - still_to_come, starts, **options
    )
