"""Small ragged batches over a poisoned pool, for the attention tests."""

from dataclasses import dataclass
from math import ceil
from typing import Any

import torch
from torch import Tensor

from tests.kernels.dense import dense_attention


@dataclass(frozen=True)
class Shape:
    """One point of the test grid. `lengths` holds (tokens already cached, query tokens) of each sequence."""

    heads: tuple[int, int] = (4, 4)
    head_dim: int = 64
    block_size: int = 16
    sliding_window: int | None = None
    soft_cap: float | None = None
    lengths: tuple[tuple[int, int], ...] = ((0, 5), (36, 1), (17, 7), (0, 1))
    dtype: torch.dtype = torch.float32


@dataclass(frozen=True)
class Batch:
    """The arguments of paged_attention, and the answer of the dense judge."""

    tensors: dict[str, Any]
    options: dict[str, Any]
    expected: Tensor
    expected_lse: Tensor


def make_batch(shape: Shape, device: torch.device, seed: int = 0) -> Batch:
    """Scatter random keys and values over shuffled blocks of a pool that is NaN everywhere else."""
    random = torch.Generator().manual_seed(seed)
    num_heads, num_kv_heads = shape.heads

    def normal(tokens: int, heads: int) -> Tensor:
        return torch.randn(tokens, heads, shape.head_dim, generator=random).to(shape.dtype)

    options = {"scale": shape.head_dim**-0.5, "sliding_window": shape.sliding_window, "soft_cap": shape.soft_cap}
    seq_lens = [cached + new for cached, new in shape.lengths]
    widths = [ceil(length / shape.block_size) for length in seq_lens]
    pool = torch.randperm(sum(widths) + 2, generator=random).tolist()
    never_written = pool.pop()
    size = (sum(widths) + 2, shape.block_size, num_kv_heads, shape.head_dim)
    key_cache, value_cache = (torch.full(size, torch.nan, dtype=shape.dtype) for _ in range(2))
    # One column more than anybody needs: unused entries name a block of NaN, which nobody may read.
    block_table = torch.full((len(seq_lens), max(widths) + 1), never_written, dtype=torch.int32)
    queries, outs, lses = [], [], []
    for s, (_, new) in enumerate(shape.lengths):
        query, keys, values = normal(new, num_heads), *(normal(seq_lens[s], num_kv_heads) for _ in range(2))
        for i in range(widths[s]):
            block_table[s, i] = block = pool.pop()
            written = slice(i * shape.block_size, min((i + 1) * shape.block_size, seq_lens[s]))
            key_cache[block, : written.stop - written.start] = keys[written]
            value_cache[block, : written.stop - written.start] = values[written]
        out, lse = dense_attention(query, keys, values, **options)
        queries.append(query), outs.append(out), lses.append(lse)
    starts = torch.tensor([0, *(new for _, new in shape.lengths)]).cumsum(0)
    tensors = {
        "query": torch.cat(queries),
        "key_cache": key_cache,
        "value_cache": value_cache,
        "block_table": block_table,
        "seq_lens": torch.tensor(seq_lens, dtype=torch.int32),
        "query_start_loc": starts.to(torch.int32),
    }
    return Batch(
        {name: tensor.to(device) for name, tensor in tensors.items()}, options, torch.cat(outs), torch.cat(lses)
    )
