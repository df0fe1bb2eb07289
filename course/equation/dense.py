"""A KV cache without pages: each sequence in one contiguous tensor, read by PyTorch's own attention.

It follows no block table and runs none of this project's kernels, so that comparing it with the paged engine compares
two ways of storing, not one with itself. The model's weights and its other layers are the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
import torch.nn.functional as F
from torch import Tensor

from engine.model.kv_store import KVStore
from engine.model.llama import LlamaModel
from engine.runner import ModelRunner
from kernels.backend import Backend, select_backend


@dataclass(frozen=True, slots=True)
class _Tokens:
    token_ids: list[int]


@dataclass(frozen=True, slots=True)
class _Chunk:
    """Tokens `start .. start + num_new_tokens - 1`, in the one contiguous region of memory that there is."""

    sequence: _Tokens
    start: int
    num_new_tokens: int
    block_table: list[int]
    needs_logits: bool = True


def dense_logits(model: LlamaModel, token_ids: Sequence[int], num_prompt_tokens: int, num_reserved: int) -> Tensor:
    """Scores of the next token after the prompt and after each further token but the last: [rows, vocab_size] float32.

    The prompt runs at once and then one token a step, each step's keys and values behind those before, in a tensor
    with room for `num_reserved` tokens (at least len(token_ids)).
    """
    runner = ModelRunner(model, _contiguous_store(model, num_reserved))
    tokens = _Tokens(list(token_ids))
    rows = [runner.run([_Chunk(tokens, 0, num_prompt_tokens, [0])])]
    rows += [runner.run([_Chunk(tokens, start, 1, [0])]) for start in range(num_prompt_tokens, len(token_ids) - 1)]
    return torch.cat(rows)


def dense_attention(
    query: Tensor, key_cache: Tensor, value_cache: Tensor,
    block_table: Tensor, seq_lens: Tensor, query_start_loc: Tensor, *,
    scale: float, sliding_window: int | None = None, soft_cap: float | None = None,
    max_query_len: int | None = None, return_lse: bool = False,
) -> Tensor:  # fmt: skip
    """Attention of one sequence over the one stretch that is the cache: [1, num_reserved, num_kv_heads, head_dim].

    The signature is kernels.interface.PagedAttention's. `block_table` and `query_start_loc` are not looked at.
    """
    assert soft_cap is None and not return_lse, "no supported model needs it"
    seq_len = int(seq_lens[0])
    keys, values = key_cache[0, :seq_len], value_cache[0, :seq_len]
    position = torch.arange(seq_len - len(query), seq_len, device=query.device)[:, None]
    key_position = torch.arange(seq_len, device=query.device)[None, :]
    visible = key_position <= position
    if sliding_window is not None:
        visible = visible & (key_position > position - sliding_window)
    read = F.scaled_dot_product_attention(
        _heads_first(query), _heads_first(keys), _heads_first(values),
        attn_mask=visible, scale=scale, enable_gqa=True,
    )  # fmt: skip
    return read[0].transpose(0, 1).contiguous()


def _heads_first(rows: Tensor) -> Tensor:
    """[tokens, heads, head_dim] -> [1, heads, tokens, head_dim]."""
    return rows.transpose(0, 1)[None]


def _contiguous_store(model: LlamaModel, num_reserved: int) -> KVStore:
    config = model.config
    return KVStore(
        num_layers=config.num_layers,
        num_blocks=1,
        block_size=num_reserved,
        num_kv_heads=config.num_kv_heads,
        head_dim=config.head_dim,
        dtype=model.dtype,
        device=model.device,
        num_cpu_blocks=0,
        backend=_dense_backend(model.device),
    )


def _dense_backend(device: torch.device) -> Backend:
    reference = select_backend("reference", device)
    return replace(
        reference,
        spec=replace(reference.spec, name="dense"),
        reason="one contiguous tensor a sequence, read by PyTorch's scaled_dot_product_attention",
        paged_attention=dense_attention,  # type: ignore[arg-type]  # it gives no log-sum-exp
    )
