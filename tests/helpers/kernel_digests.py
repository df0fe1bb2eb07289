"""Prints digests of what every compiled kernel of the CPU gives here, as JSON (tests/kernels/test_first_process.py).

Usage: python -m tests.helpers.kernel_digests [--reversed]
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor

from engine.model.linear import has_int4_gemm
from kernels.add_rms_norm.cpu import add_rms_norm
from kernels.argmax_logsumexp.cpu import argmax_logsumexp
from kernels.bf16_gemm.avx512 import has_instruction
from kernels.bf16_gemm.cpu import bf16_gemm, pack_tiles
from kernels.copy_blocks.cpu import copy_blocks
from kernels.decoder_layers.cpu import run_bf16_layers, run_int4_layers
from kernels.dequantize_int4.cpu import dequantize_int4
from kernels.int4_gemm.cpu import int4_gemm, pack_int4, pack_int8
from kernels.numba_intrinsics import cached_flat_view, flat_view
from kernels.paged_attention.cpu import paged_attention
from kernels.rms_norm.cpu import rms_norm
from kernels.rotary_write_kv.cpu import rotary_write_kv
from kernels.silu_mul.cpu import silu_mul
from kernels.threads import match_threads, parallel_loops
from tests.kernels.cases import Shape, make_batch

NUM_THREADS = 2
FLOATS = (torch.float32, torch.bfloat16)
ATTENTION = {
    "one sequence": ((90, 1),),
    "several": ((200, 1), (36, 1), (170, 1), (0, 1)),
    "in splits": ((700, 1), (300, 1)),
    "prefill": ((0, 150), (130, 37), (0, 5)),
    "mixed": ((300, 1), (17, 70)),
}
"""What the sequences have cached, and their query tokens."""
HEAD_DIMS = (64, 20)
"""With loops on registers and without them."""

Outputs = tuple[Tensor, ...]
Case = Callable[[], Outputs]


def main() -> None:
    torch.set_num_threads(NUM_THREADS)
    cases = list(all_cases())
    if "--reversed" in sys.argv:
        cases.reverse()
    print(json.dumps({name: digest(case()) for name, case in cases}))


def digest(outputs: Outputs) -> str:
    """SHA-256 over the bits of the outputs."""
    sha256 = hashlib.sha256()
    for output in outputs:
        sha256.update(flat_view(output.contiguous()).tobytes())
    return sha256.hexdigest()


def all_cases() -> Iterator[tuple[str, Case]]:
    """Inputs are drawn when a case runs, from a seed of its own: the order of cases changes nothing."""
    for dtype in FLOATS:
        for head_dim in HEAD_DIMS:
            for name, lengths in ATTENTION.items():
                shape = Shape((6, 2), head_dim, lengths=lengths, dtype=dtype)
                yield f"attention {name} {head_dim} {dtype}", lambda shape=shape: attention(shape)
                yield f"invariant {name} {head_dim} {dtype}", lambda shape=shape: attention(shape, batch_invariant=True)
        for tokens in (1, 100):
            yield f"rms_norm {tokens} {dtype}", lambda t=tokens, d=dtype: (rms_norm(*normed(t, d), 1e-5),)
            yield f"add_rms_norm {tokens} {dtype}", lambda t=tokens, d=dtype: added(t, d)
            yield f"silu_mul {tokens} {dtype}", lambda t=tokens, d=dtype: (silu_mul(normal(t, 1024, dtype=d)),)
        yield f"rotary_write_kv {dtype}", lambda d=dtype: rotated(d)
        yield f"copy_blocks {dtype}", lambda d=dtype: copied(d)
    for tokens in (1, 3):
        yield f"argmax_logsumexp {tokens}", lambda t=tokens: (argmax_logsumexp(normal(t, 999)),)
    yield "dequantize_int4", lambda: (dequantize_int4(whole(64, 64), normal(4, 64, 2, dtype=torch.bfloat16)),)
    for tokens in (1, 7, 40):
        if has_int4_gemm():
            yield f"int4_gemm {tokens}", lambda t=tokens: (int4_gemm(normal(t, 128), four_bits(96, 128)),)
            yield f"int8_gemm {tokens}", lambda t=tokens: (int4_gemm(normal(t, 128), eight_bits(96, 128)),)
        if has_instruction():
            yield f"bf16_gemm {tokens}", lambda t=tokens: (bf16_gemm(normal(t, 128), sixteen_bits(96, 128)),)
    for name, (layers, pack) in layer_kinds().items():
        for dtype in FLOATS:
            for company, lengths in ATTENTION.items():
                yield (
                    f"layers {name} {company} {dtype}",
                    lambda r=layers, p=pack, n=lengths, d=dtype: decoded(r, p, n, d),
                )


def layer_kinds() -> dict[str, Any]:
    """The compiled layers that this processor has, and what packs their matrices."""
    kinds: dict[str, Any] = {}
    if has_int4_gemm():
        kinds["int4"] = run_int4_layers, four_bits
    if has_instruction():
        kinds["bfloat16"] = run_bf16_layers, sixteen_bits
    return kinds


def normal(*shape: int, dtype: torch.dtype = torch.float32, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed)).to(dtype)


def whole(*shape: int) -> Tensor:
    return torch.randint(0, 256, shape, dtype=torch.uint8, generator=torch.Generator().manual_seed(1))


def four_bits(rows: int, columns: int) -> Tensor:
    groups = columns // 32
    return pack_int4(whole(rows, columns // 2), normal(rows, groups).half() / 64, normal(rows, groups).half() / 8)


def eight_bits(rows: int, columns: int) -> Tensor:
    groups = columns // 32
    return pack_int8(whole(rows, columns), normal(rows, groups).half() / 64, normal(rows, groups).half() / 8)


def sixteen_bits(rows: int, columns: int) -> Tensor:
    return pack_tiles(normal(rows, columns, seed=2) / 8)


def normed(tokens: int, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    return normal(tokens, 576, dtype=dtype), normal(576, dtype=dtype, seed=3)


def added(tokens: int, dtype: torch.dtype) -> Outputs:
    x, weight = normed(tokens, dtype)
    return add_rms_norm(x, normal(tokens, 576, dtype=dtype, seed=4), weight, 1e-5)


def attention(shape: Shape, *, batch_invariant: bool = False) -> Outputs:
    batch = make_batch(shape, torch.device("cpu"))
    out = paged_attention(**batch.tensors, **batch.options, return_lse=True, batch_invariant=batch_invariant)
    assert isinstance(out, tuple)
    return out


def rotated(dtype: torch.dtype) -> Outputs:
    keys, values = torch.zeros(3, 4, 2, 64, dtype=dtype), torch.zeros(3, 4, 2, 64, dtype=dtype)
    angles = normal(5, 32, seed=5)
    query = rotary_write_kv(
        normal(5, 8, 64, dtype=dtype), angles.cos(), angles.sin(), keys, values, torch.tensor([3, -1, 0, 11, 6])
    )
    return query, keys, values


def copied(dtype: torch.dtype) -> Outputs:
    cache = normal(4, 4, 2, 20, dtype=dtype)
    copy_blocks([cache], torch.tensor([[0, 3], [1, 2]]))
    return (cache,)


def decoded(
    run_layers: Any, pack: Callable[[int, int], Tensor], lengths: tuple[tuple[int, int], ...], dtype: torch.dtype
) -> Outputs:
    """Two layers, of the sizes of no model, over the cache of an attention test."""
    heads, kv_heads, head_dim, hidden, intermediate, block_size = 6, 2, 64, 128, 96, 16
    batch = make_batch(
        Shape((heads, kv_heads), head_dim, block_size, lengths=lengths, dtype=dtype), torch.device("cpu")
    )
    tensors = batch.tensors
    starts, seq_lens, table = (tensors[name] for name in ("query_start_loc", "seq_lens", "block_table"))
    keys, values = (torch.stack([tensors[name]] * 2) for name in ("key_cache", "value_cache"))
    positions: list[int] = []
    slots: list[int] = []
    for s, (cached, new) in enumerate(lengths):
        positions += range(cached, cached + new)
        slots += [int(table[s, p // block_size]) * block_size + p % block_size for p in range(cached, cached + new)]
    width = heads * head_dim
    shapes = (
        (width + 2 * kv_heads * head_dim, hidden),
        (hidden, width),
        (2 * intermediate, hidden),
        (hidden, intermediate),
    )
    matrices = [pack(*shape) for shape in shapes]
    angles = torch.outer(torch.tensor(positions, dtype=torch.float32), 10_000 ** -torch.linspace(0, 1, head_dim // 2))
    x = normal(len(slots), hidden, seed=6)
    with parallel_loops():
        run_layers(
            flat_view(x), np.array([[matrix.data_ptr() for matrix in matrices]] * 2, np.uint64),
            normal(2, 2, hidden, seed=7).numpy(), np.float32(1e-5), (heads, kv_heads, head_dim, intermediate),
            flat_view(angles.cos()), flat_view(angles.sin()),
            cached_flat_view(keys).reshape(2, -1), cached_flat_view(values).reshape(2, -1),
            np.array([0, 40], np.int64), np.array(slots, np.int64),
            table.numpy(), seq_lens.numpy(), starts.numpy(),
            block_size, False, match_threads(), np.zeros(3, np.int64),
        )  # fmt: skip
    return x, keys, values


if __name__ == "__main__":
    main()
