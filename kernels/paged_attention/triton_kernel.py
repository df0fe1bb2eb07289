"""paged_attention on a GPU, in Triton (interface: kernels.interface.PagedAttention).

Two kernels share a batch: decode takes the sequences with one query token, prefill the others, and each program
finds out on the device whether a sequence is its own. The host reads shapes only, never a length, so it never waits
for the GPU and a decode batch can be captured in a CUDA graph.
"""

from typing import Any

import torch
from torch import Tensor

from kernels.paged_attention.triton_config import (
    DECODE,
    PREFILL,
    Tiles,
    architecture_of,
    multiprocessors_of,
    next_power_of_two,
    num_splits,
    tiles_for,
)
from kernels.paged_attention.triton_decode import decode_kernel, merge_kernel
from kernels.paged_attention.triton_prefill import prefill_kernel


def paged_attention(
    query: Tensor, key_cache: Tensor, value_cache: Tensor,
    block_table: Tensor, seq_lens: Tensor, query_start_loc: Tensor, *,
    scale: float, sliding_window: int | None = None, soft_cap: float | None = None, return_lse: bool = False,
) -> Tensor | tuple[Tensor, Tensor]:
    if key_cache.dtype == torch.bfloat16 and key_cache.device.type == "cpu":
        raise ValueError("Triton's interpreter cannot multiply bfloat16 (triton issue 11584); use float32 there")
    num_tokens, num_heads, head_dim = query.shape
    if query.stride()[1:] != (head_dim, 1):
        query = query.contiguous()
    out = torch.empty(query.shape, dtype=query.dtype, device=query.device)
    lse = torch.empty(num_tokens, num_heads, device=query.device) if return_lse else None
    inputs = (query, key_cache, value_cache, block_table, seq_lens, query_start_loc)
    constants = constants_of(num_heads, key_cache.shape, sliding_window)
    # As every sequence has a query token, equally many tokens and sequences mean that all of them decode.
    if num_tokens > len(seq_lens):
        _launch_prefill(inputs, out, lse, scale, soft_cap, constants)
    _launch_decode(inputs, out, lse, scale, soft_cap, constants)
    return out if lse is None else (out, lse)


def constants_of(num_heads: int, cache_shape: torch.Size, sliding_window: int | None) -> dict[str, int]:
    """What the kernels are compiled for: the model's sizes and the block size."""
    _, block_size, num_kv_heads, head_dim = cache_shape
    return {
        "BLOCK_SIZE": block_size, "NUM_KV_HEADS": num_kv_heads, "GROUP": num_heads // num_kv_heads,
        "HEAD_DIM": head_dim, "WINDOW": sliding_window or 0, "DIM": max(16, next_power_of_two(head_dim)),
    }  # fmt: skip


def launch_options(tiles: Tiles) -> dict[str, int]:
    return {
        "ROWS": tiles.rows, "KEYS": tiles.keys, "num_warps": tiles.num_warps, "num_stages": tiles.num_stages
    }


Inputs = tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]


def _launch_prefill(
    inputs: Inputs, out: Tensor, lse: Tensor | None, scale: float, soft_cap: float | None, constants: dict[str, int]
) -> None:
    query, key_cache, _, block_table, seq_lens, _ = inputs
    tiles = _tiles(PREFILL, key_cache, constants)
    grid = (len(query) // (tiles.rows // constants["GROUP"]) + len(seq_lens), constants["NUM_KV_HEADS"])
    prefill_kernel[grid](
        *inputs, out, lse, len(seq_lens), query.stride(0), block_table.stride(0), scale, soft_cap,
        **constants, **launch_options(tiles),
    )  # fmt: skip


def _launch_decode(
    inputs: Inputs, out: Tensor, lse: Tensor | None, scale: float, soft_cap: float | None, constants: dict[str, int]
) -> None:
    query, key_cache, _, block_table, seq_lens, query_start_loc = inputs
    num_seqs, num_kv_heads = len(seq_lens), constants["NUM_KV_HEADS"]
    max_keys = block_table.shape[1] * constants["BLOCK_SIZE"]
    if constants["WINDOW"]:
        max_keys = min(max_keys, constants["WINDOW"])
    splits = num_splits(num_seqs * num_kv_heads, max_keys, multiprocessors_of(query.device))
    split_out, split_lse = out, lse
    if splits > 1:
        split_lse = torch.empty(num_seqs, query.shape[1], splits, device=query.device)
        split_out = torch.empty(*split_lse.shape, query.shape[2], device=query.device)
    decode_kernel[(num_seqs, num_kv_heads, splits)](
        *inputs, split_out, split_lse, query.stride(0), block_table.stride(0), scale, soft_cap,
        **constants, SPLITS=splits, **launch_options(_tiles(DECODE, key_cache, constants)),
    )  # fmt: skip
    if splits > 1:
        merge_kernel[(num_seqs, query.shape[1])](
            split_out, split_lse, query_start_loc, out, lse,
            HEAD_DIM=constants["HEAD_DIM"], SPLITS=splits, DIM=constants["DIM"],
        )  # fmt: skip


def _tiles(tables: dict[str, Any], key_cache: Tensor, constants: dict[str, int]) -> Tiles:
    row_bytes = constants["DIM"] * key_cache.element_size()
    return tiles_for(tables, architecture_of(key_cache.device), row_bytes, constants["GROUP"])
