"""paged_attention on a GPU, in Triton (interface: kernels.interface.PagedAttention).

Two kernels share a batch: decode takes the sequences with one query token, prefill the others, and each program
finds out on the device whether a sequence is its own. The host reads shapes only, never a length, so it never waits
for the GPU and a decode batch can be captured in a CUDA graph.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from kernels.paged_attention.triton_config import (
    DECODE,
    PREFILL,
    Table,
    architecture_of,
    multiprocessors_of,
    next_power_of_two,
    num_splits,
    precision_of,
    tiles_for,
)
from kernels.paged_attention.triton_decode import decode_kernel, merge_kernel
from kernels.paged_attention.triton_prefill import prefill_kernel


@dataclass(frozen=True)
class Geometry:
    """What the kernels are compiled for: the model's sizes, the block size and the chip."""

    architecture: str
    element_size: int
    num_heads: int
    num_kv_heads: int
    head_dim: int
    block_size: int
    sliding_window: int | None

    @property
    def group(self) -> int:
        """Query heads that share one KV head."""
        return self.num_heads // self.num_kv_heads

    @property
    def padded_dim(self) -> int:
        """`head_dim` rounded up to a power of two, at least 16 for `tl.dot`."""
        return max(16, next_power_of_two(self.head_dim))

    def constants(self, tables: dict[str, Table]) -> dict[str, int | str]:
        """The compile-time arguments and launch options of the kernel that `tables` (PREFILL or DECODE) cuts."""
        tiles = tiles_for(tables, self.architecture, self.element_size, self.padded_dim, self.group)
        return {
            "BLOCK_SIZE": self.block_size, "NUM_KV_HEADS": self.num_kv_heads, "GROUP": self.group,
            "HEAD_DIM": self.head_dim, "WINDOW": self.sliding_window or 0,
            "ROWS": tiles.rows, "KEYS": tiles.keys, "DIM": self.padded_dim,
            "PRECISION": precision_of(self.architecture, self.padded_dim),
            "num_warps": tiles.num_warps, "num_stages": tiles.num_stages,
        }  # fmt: skip


def paged_attention(
    query: Tensor, key_cache: Tensor, value_cache: Tensor,
    block_table: Tensor, seq_lens: Tensor, query_start_loc: Tensor, *,
    scale: float, sliding_window: int | None = None, soft_cap: float | None = None,
    max_query_len: int | None = None, return_lse: bool = False,
) -> Tensor | tuple[Tensor, Tensor]:  # fmt: skip
    """See kernels.interface.PagedAttention."""
    if key_cache.dtype == torch.bfloat16 and key_cache.device.type == "cpu":
        raise ValueError("Triton's interpreter cannot multiply bfloat16 (triton issue 11584); use float32 there")
    num_tokens, num_heads, head_dim = query.shape
    if query.stride()[1:] != (head_dim, 1):
        query = query.contiguous()
    out = torch.empty(query.shape, dtype=query.dtype, device=query.device)
    lse = torch.empty(num_tokens, num_heads, device=query.device) if return_lse else None
    _, block_size, num_kv_heads, _ = key_cache.shape
    geometry = Geometry(
        architecture_of(query.device), key_cache.element_size(),
        num_heads, num_kv_heads, head_dim, block_size, sliding_window,
    )  # fmt: skip
    batch = (query, key_cache, value_cache, block_table, seq_lens, query_start_loc)
    if max_query_len is None or max_query_len > 1:
        _launch_prefill(batch, out, lse, scale, soft_cap, geometry)
    _launch_decode(batch, out, lse, scale, soft_cap, geometry)
    return out if lse is None else (out, lse)


Batch = tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]


def _launch_prefill(
    batch: Batch, out: Tensor, lse: Tensor | None, scale: float, soft_cap: float | None, geometry: Geometry
) -> None:
    """Write rows of sequences with several query tokens to `out` [num_tokens, num_heads, head_dim]."""
    query, _, _, block_table, seq_lens, _ = batch
    constants = geometry.constants(PREFILL)
    tokens_per_tile = int(constants["ROWS"]) // geometry.group
    prefill_kernel[(len(query) // tokens_per_tile + len(seq_lens), geometry.num_kv_heads)](
        *batch, out, lse, len(seq_lens), query.stride(0), block_table.stride(0), scale, soft_cap, **constants
    )


def _launch_decode(
    batch: Batch, out: Tensor, lse: Tensor | None, scale: float, soft_cap: float | None, geometry: Geometry
) -> None:
    """Write rows of sequences with one query token to `out` [num_tokens, num_heads, head_dim]."""
    query, _, _, block_table, seq_lens, query_start_loc = batch
    num_seqs = len(seq_lens)
    max_keys = block_table.shape[1] * geometry.block_size
    if geometry.sliding_window:
        max_keys = min(max_keys, geometry.sliding_window)
    splits = num_splits(num_seqs * geometry.num_kv_heads, max_keys, multiprocessors_of(query.device))
    split_out, split_lse = out, lse
    if splits > 1:
        split_lse = torch.empty(num_seqs, geometry.num_heads, splits, device=query.device)
        split_out = torch.empty(*split_lse.shape, geometry.head_dim, device=query.device)
    decode_kernel[(num_seqs, geometry.num_kv_heads, splits)](
        *batch, split_out, split_lse, query.stride(0), block_table.stride(0), scale, soft_cap,
        **geometry.constants(DECODE), SPLITS=splits,
    )  # fmt: skip
    if splits > 1:
        merge_kernel[(num_seqs, geometry.num_heads)](
            split_out, split_lse, query_start_loc, out, lse,
            HEAD_DIM=geometry.head_dim, SPLITS=splits, DIM=geometry.padded_dim,
        )  # fmt: skip
