"""What every backend offers: the signatures of the operations, with shapes, written down once.

One layer of the paged cache is two tensors, `key_cache` and `value_cache`, each
[num_blocks, block_size, num_kv_heads, head_dim] and contiguous. A *slot* is room for one token:
slot = block_id * block_size + offset. The twins of an operation share its signature: any two can be swapped.
"""

from collections.abc import Sequence
from typing import Literal, Protocol, overload

from torch import Tensor


class WriteKv(Protocol):
    """Store each new token's key and value in its slot, in place."""

    def __call__(
        self, key: Tensor, value: Tensor, key_cache: Tensor, value_cache: Tensor, slot_mapping: Tensor
    ) -> None:
        """`key`, `value` [num_tokens, num_kv_heads, head_dim]; `slot_mapping` [num_tokens] int64.

        A slot of -1 skips its token: batches padded for CUDA graphs carry such rows.
        """
        ...


class PagedAttention(Protocol):
    """Causal attention of a ragged batch over the paged cache, following the block tables.

    The batch mixes prefill, chunked prefill and decode: sequence s owns the query tokens
    query_start_loc[s] : query_start_loc[s + 1], right-aligned to its seq_lens[s] known tokens, so query i of q
    sits at position seq_len - q + i and sees the keys at positions up to its own. Their KV is already written.

    query            [num_tokens, num_heads, head_dim]; head h reads KV head h // (num_heads // num_kv_heads)
    block_table      [num_seqs, max_blocks_per_seq] int32: entry i holds positions i * block_size and on
    seq_lens         [num_seqs] int32, the query tokens of this call included; 0 gives rows of zeros
    query_start_loc  [num_seqs + 1] int32
    scale            the factor on query . key
    sliding_window   w: a query at position p sees keys p - w + 1 .. p only
    soft_cap         c: scores become c * tanh(score / c) before masking (Gemma 2, section 2)
    result           [num_tokens, num_heads, head_dim] in the query's dtype; with `return_lse` also the
                     log-sum-exp of each row's masked scores, [num_tokens, num_heads] float32
    """

    @overload
    def __call__(
        self, query: Tensor, key_cache: Tensor, value_cache: Tensor,
        block_table: Tensor, seq_lens: Tensor, query_start_loc: Tensor, *,
        scale: float, sliding_window: int | None = None, soft_cap: float | None = None,
        return_lse: Literal[False] = False,
    ) -> Tensor: ...

    @overload
    def __call__(
        self, query: Tensor, key_cache: Tensor, value_cache: Tensor,
        block_table: Tensor, seq_lens: Tensor, query_start_loc: Tensor, *,
        scale: float, sliding_window: int | None = None, soft_cap: float | None = None,
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
        """`src_cache`, `dst_cache` [num_blocks, ...] alike but for num_blocks; `src_to_dst` [n, 2] int64."""
        ...


class RmsNorm(Protocol):
    """hidden / sqrt(mean(hidden ** 2) + eps) * weight, row by row, in float32 inside (Zhang and Sennrich, 2019)."""

    def __call__(self, hidden: Tensor, weight: Tensor, eps: float) -> Tensor:
        """`hidden` [num_tokens, size], `weight` [size]; the result is like `hidden`."""
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
        contiguous; `slot_mapping` [num_tokens] int64, -1 turns the query but writes nothing. The result is
        [num_tokens, num_heads, head_dim] in qkv's dtype. All is computed in float32 and rounded once.
        """
        ...


class BestToken(Protocol):
    """Where each row of scores is greatest (the first place, of several), and the logarithm of its sum of exponentials.

    A score less the latter is the logarithm of a probability.
    """

    def __call__(self, scores: Tensor) -> tuple[Tensor, Tensor]:
        """`scores` [rows, vocab_size] float32 -> [rows] int64 and [rows] float32."""
        ...
