"""What every backend offers: the signatures of the operations, with shapes, written down once.

One layer of the paged cache is two tensors, `key_cache` and `value_cache`, each
[num_blocks, block_size, num_kv_heads, head_dim] and contiguous. A *slot* is room for one token:
slot = block_id * block_size + offset. The implementations of an operation share its
signature: any two can be swapped.
"""

from collections.abc import Sequence
from typing import Literal, Protocol, overload

from torch import Tensor


class PagedAttention(Protocol):
    """Causal attention of a ragged batch over the paged cache, following the block tables.

    The batch mixes prefill, chunked prefill and decode: sequence s owns the query tokens
    query_start_loc[s] : query_start_loc[s + 1], right-aligned to its seq_lens[s] known tokens, so query i of q
    sits at position seq_len - q + i and sees the keys at positions up to its own. Their KV is already written.

    query            [num_tokens, num_heads, head_dim]; head h reads KV head h // (num_heads // num_kv_heads)
    block_table      [num_seqs, max_blocks_per_seq] int32: entry i holds positions i * block_size and on
    seq_lens         [num_seqs] int32, the query tokens of this call included; 0 gives rows of zeros
    query_start_loc  [num_seqs + 1] int32; a sequence may have no query token
    scale            the factor on query . key
    sliding_window   w: a query at position p sees keys p - w + 1 .. p only
    soft_cap         c: scores become c * tanh(score / c) before masking (Gemma 2, section 2)
    max_query_len    the most query tokens of a sequence, where the caller knows it: lengths on a GPU cannot be read
                     without waiting for it, and a batch that only decodes (1) takes one kernel less
    result           [num_tokens, num_heads, head_dim] in the query's dtype; with `return_lse` also the
                     log-sum-exp of each row's masked scores, [num_tokens, num_heads] float32
    """

    @overload
    def __call__(
        self,
        query: Tensor,
        key_cache: Tensor,
        value_cache: Tensor,
        block_table: Tensor,
        seq_lens: Tensor,
        query_start_loc: Tensor,
        *,
        scale: float,
        sliding_window: int | None = None,
        soft_cap: float | None = None,
        max_query_len: int | None = None,
        return_lse: Literal[False] = False,
    ) -> Tensor: ...

    @overload
    def __call__(
        self,
        query: Tensor,
        key_cache: Tensor,
        value_cache: Tensor,
        block_table: Tensor,
        seq_lens: Tensor,
        query_start_loc: Tensor,
        *,
        scale: float,
        sliding_window: int | None = None,
        soft_cap: float | None = None,
        max_query_len: int | None = None,
        return_lse: Literal[True],
    ) -> tuple[Tensor, Tensor]: ...


class CopyBlocks(Protocol):
    """Copy whole blocks within each cache, in place (copy-on-write)."""

    def __call__(self, caches: Sequence[Tensor], src_to_dst: Tensor) -> None:
        """`caches`: KV tensors [num_blocks, ...] of one shape, all copied alike; `src_to_dst` [n, 2] int64.

        Each destination appears once and none is also a source, so the order of the copies does not matter.
        """
        ...


class SwapBlocks(Protocol):
    """Copy whole blocks from one cache into another one, which may live on another device, in place."""

    def __call__(self, src_cache: Tensor, dst_cache: Tensor, src_to_dst: Tensor) -> None:
        """`src_cache`, `dst_cache` [num_layers, num_blocks, ...] alike but for num_blocks; `src_to_dst` [n, 2] int64.

        `src_to_dst` is in CPU memory. A copy to a GPU may still be under way on the current stream when this returns.
        """
        ...


class RmsNorm(Protocol):
    """hidden / sqrt(mean(hidden ** 2) + eps) * weight, row by row, in float32 inside (Zhang and Sennrich, 2019)."""

    def __call__(self, hidden: Tensor, weight: Tensor, eps: float) -> Tensor:
        """`hidden` [num_tokens, size], `weight` [size]; the result is like `hidden`."""
        ...


class AddRmsNorm(Protocol):
    """RmsNorm of `residual + x`: the end of one block of a layer and the beginning of the next."""

    def __call__(self, x: Tensor, residual: Tensor, weight: Tensor, eps: float) -> tuple[Tensor, Tensor]:
        """`x`, `residual` [num_tokens, size], `weight` [size] -> the norm of the sum, and the sum, both like them.

        Their types may differ: the sum is rounded to the wider one, and it is the rounded sum that is normalised.
        """
        ...


class SiluMul(Protocol):
    """silu(gate) * up, the gate of a Llama MLP (Shazeer, 2020)."""

    def __call__(self, gate_up: Tensor) -> Tensor:
        """`gate_up` [num_tokens, 2 * size], gates first; the result is [num_tokens, size] in the same dtype."""
        ...


class RotaryWriteKv(Protocol):
    """Rotary embedding (Su and others, 2021; half-split layout) and the KV write, from one merged product."""

    def __call__(
        self, qkv: Tensor, cos: Tensor, sin: Tensor, key_cache: Tensor, value_cache: Tensor, slot_mapping: Tensor
    ) -> Tensor:
        """Store keys, turned, and values in their slots; return the turned queries.

        `qkv` [num_tokens, num_heads + 2 * num_kv_heads, head_dim]; `cos`, `sin` [num_tokens, head_dim / 2] float32,
        contiguous; `slot_mapping` [num_tokens] int64. A slot of -1 turns the query but writes nothing: batches padded
        for CUDA graphs carry such rows. The result is [num_tokens, num_heads, head_dim] in qkv's dtype. All is computed
        in float32 and rounded once.
        """
        ...


class ArgmaxLogsumexp(Protocol):
    """The token with the largest logit in each row (the first of equal ones), that logit, and the row's log-sum-exp.

    A logit minus the log-sum-exp is the token's log-probability. A row with NaN or +inf gives a log-sum-exp that is not
    finite, and some token of the row.
    """

    def __call__(self, logits: Tensor) -> Tensor:
        """`logits` [rows, vocab_size] float32 -> [rows, 3] float64: token id, its logit, log-sum-exp.

        One tensor, so that the host waits for a GPU once; float64 holds all three exactly.
        """
        ...
