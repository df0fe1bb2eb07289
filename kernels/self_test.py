"""Every kernel of a step at tiny sizes, by one backend and by the reference: what differs before a model runs."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import TYPE_CHECKING

import torch
from torch import Tensor

if TYPE_CHECKING:
    from kernels.backend import Backend

TOLERANCE = {torch.float32: 1e-3, torch.float16: 1e-2, torch.bfloat16: 5e-2}
"""By the narrowest type involved: far more than rounding, far less than one key too many."""


@dataclass(frozen=True)
class AttentionSizes:
    """What kernels are compiled for. A test with a model's own sizes fails where its first prompt would."""

    num_heads: int = 4
    num_kv_heads: int = 2
    head_dim: int = 64
    block_size: int = 4
    dtype: torch.dtype = torch.float32
    """Of queries and results."""
    kv_dtype: torch.dtype = torch.float32


def wrong_operations(backend: Backend, reference: Backend, device: torch.device, sizes: AttentionSizes) -> list[str]:
    """The operations of `backend` on `device` whose results are not those of `reference` on the CPU.

    Raises whatever the backend's kernels raise.
    """
    ours, theirs = _results(backend, device, sizes), _results(reference, torch.device("cpu"), sizes)
    tolerance = max(TOLERANCE[sizes.dtype], TOLERANCE[sizes.kv_dtype])

    def is_close(name: str) -> bool:
        return torch.allclose(ours[name].cpu().float(), theirs[name].float(), rtol=tolerance, atol=tolerance)

    return [name for name in theirs if not is_close(name)]


def _results(backend: Backend, device: torch.device, sizes: AttentionSizes) -> dict[str, Tensor]:
    """Two sequences prefilled, then a token of each decoded, then a block copied, then the kernels between those.

    By operation and phase: shapes as in kernels/interface.py.
    """
    random = torch.Generator().manual_seed(0)
    block_size, head_dim = sizes.block_size, sizes.head_dim
    table = [[3, 1, 4], [0, 5, 0]]
    seq_lens = [2 * block_size + ceil(block_size / 2), block_size + 1]

    def numbers(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=random).to(device)

    def whole(values: list[int] | list[list[int]], dtype: torch.dtype = torch.int32) -> Tensor:
        return torch.tensor(values, dtype=dtype, device=device)

    key_cache = torch.zeros(6, block_size, sizes.num_kv_heads, head_dim, device=device, dtype=sizes.kv_dtype)
    value_cache = torch.zeros_like(key_cache)
    results: dict[str, Tensor] = {}
    before = [0, 0]
    for phase, known in (("prefill", [length - 1 for length in seq_lens]), ("decode", seq_lens)):
        positions = [(s, p) for s in range(2) for p in range(before[s], known[s])]
        slots = [table[s][p // block_size] * block_size + p % block_size for s, p in positions]
        starts = [0, known[0] - before[0], len(positions)]
        angles = numbers(len(positions), head_dim // 2)
        query = backend.rotary_write_kv(
            numbers(len(positions), sizes.num_heads + 2 * sizes.num_kv_heads, head_dim).to(sizes.dtype),
            angles.cos(), angles.sin(), key_cache, value_cache, whole(slots, torch.int64),
        )  # fmt: skip
        results[f"rotary_write_kv at {phase}"] = query
        results[f"paged_attention at {phase}"] = backend.paged_attention(
            query, key_cache, value_cache, whole(table), whole(known), whole(starts), scale=head_dim**-0.5,
            max_query_len=max(known[s] - before[s] for s in range(2)),
        )  # fmt: skip
        before = known
    backend.copy_blocks([key_cache, value_cache], whole([[1, 2]], torch.int64))
    results["copy_blocks"] = torch.stack([key_cache, value_cache])
    hidden, residual, gate_up = (numbers(3, size).to(sizes.dtype) for size in (96, 96, 2 * 96))
    results["rms_norm"] = backend.rms_norm(hidden, numbers(96).to(sizes.dtype), 1e-5)
    results["add_rms_norm"] = torch.stack(backend.add_rms_norm(hidden, residual, numbers(96).to(sizes.dtype), 1e-5))
    results["silu_mul"] = backend.silu_mul(gate_up)
    results["argmax_logsumexp"] = backend.argmax_logsumexp(numbers(3, 300))
    return results
