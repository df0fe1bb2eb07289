"""All decoder layers in one compiled call (each operation's folder defines it).

A decode step of one sequence is 30 layers of ten small operations. Called from Python one by one, with tensors made and
unmade between them, they took 5.6 ms, and 3.4 in one call. Python's lock is released meanwhile, so that other threads
are served.
"""

# Numba takes the types of what it compiles from the arguments of the first call.
# mypy: disable-error-code="no-untyped-def, no-untyped-call"

from typing import Any

import numba
import numpy as np
from numba.core import types
from numba.core.errors import RequireLiteralValue
from numba.extending import overload

from kernels.bf16_gemm import avx512 as bf16_avx512
from kernels.bf16_gemm.cpu import gemm_tiles
from kernels.int4_gemm import avx512 as int4_avx512
from kernels.int4_gemm.cpu import gemm_int4
from kernels.numba_intrinsics import clock, compiled
from kernels.paged_attention.cpu import attend_batch
from kernels.rms_norm.cpu import rms_norm_rows
from kernels.rotary_write_kv.cpu import rotate_and_store
from kernels.silu_mul.cpu import silu_mul_rows

CHUNK_TOKENS = 1024
"""Tokens that go through the operations between two attentions together, so that what one leaves is still near."""
PARTS = ("products", "attention", "between")
PRODUCTS, ATTENTION, BETWEEN = range(3)
QKV, ATTENTION_OUTPUT, GATE_UP, DOWN = range(4)
ATTENTION_NORM, MLP_NORM = range(2)


def product(bits, packed, rows, columns, x, num_tokens, out):
    """out [num_tokens * rows] = x [num_tokens * columns] times a packed matrix, over weights of so many bits."""
    raise NotImplementedError("for compiled callers only")


@overload(product)
def _choose_product(bits, packed, rows, columns, x, num_tokens, out):
    """When it is compiled, not when it runs: a processor may have the one instruction and not the other."""
    if not isinstance(bits, types.IntegerLiteral):
        raise RequireLiteralValue("bits")

    def over_four_bits(bits, packed, rows, columns, x, num_tokens, out):
        gemm_int4(packed, rows // int4_avx512.ROWS, columns // int4_avx512.GROUP, x, num_tokens, out)

    def over_sixteen_bits(bits, packed, rows, columns, x, num_tokens, out):
        gemm_tiles(packed, rows // bf16_avx512.ROWS, columns // 2, x, num_tokens, out)

    return over_four_bits if bits.literal_value == 4 else over_sixteen_bits


def _compile_layers(bits: int) -> Any:
    """The layers over weights of four bits (int4_gemm) or sixteen (bf16_gemm)."""

    @compiled(nogil=True)
    def run_layers(
        hidden,  # [num_tokens * hidden_size] float32, from the embedding; afterwards what the last layer made of it
        weights,  # [num_layers, 4] uint64: addresses of packed matrices, in the order of the names above
        norms,  # [num_layers, 2, hidden_size] float32
        eps,  # float32
        shape,  # num_heads, num_kv_heads, head_dim, intermediate_size
        cos,  # [num_tokens * head_dim / 2] float32
        sin,  # like cos
        key_cache,  # [num_layers, num_slots * num_kv_heads * head_dim] float32, or uint16 bits of bfloat16
        value_cache,  # like key_cache
        windows,  # [num_layers] int64, 0 for none
        slot_mapping,  # [num_tokens] int64, -1 writes nothing
        block_table,  # [num_seqs, max_blocks_per_seq] int32
        seq_lens,  # [num_seqs] int32
        query_start_loc,  # [num_seqs + 1] int32
        block_size,
        batch_invariant,  # bool, see attend_batch
        num_threads,
        cycles,  # [3] int64: what each of PARTS took is added, in cycles of the processor's clock
    ):
        num_heads, num_kv_heads, head_dim, intermediate = shape
        num_tokens, size = len(slot_mapping), norms.shape[2]
        width, half = num_heads * head_dim, head_dim // 2
        all_heads = width + 2 * num_kv_heads * head_dim
        scale = np.float32(1.0 / np.sqrt(head_dim))
        query = np.empty(num_tokens * width, np.float32)
        attended = np.empty(num_tokens * width, np.float32)
        lse = np.empty(num_tokens * num_heads, np.float32)
        chunk_tokens = min(num_tokens, CHUNK_TOKENS)
        normed = np.empty(chunk_tokens * size, np.float32)
        qkv = np.empty(chunk_tokens * all_heads, np.float32)
        gate_up = np.empty(chunk_tokens * 2 * intermediate, np.float32)
        gated = np.empty(chunk_tokens * intermediate, np.float32)
        update = np.empty(chunk_tokens * size, np.float32)
        now = clock()
        for layer in range(len(weights)):
            matrix, norm, keys, values = weights[layer], norms[layer], key_cache[layer], value_cache[layer]
            for first in range(0, num_tokens, CHUNK_TOKENS):
                end = min(first + CHUNK_TOKENS, num_tokens)
                chunk, count = hidden[first * size : end * size], end - first
                rms_norm_rows(chunk, norm[ATTENTION_NORM], eps, normed)
                now = _record_elapsed(BETWEEN, now, cycles)
                product(bits, matrix[QKV], all_heads, size, normed, count, qkv)
                now = _record_elapsed(PRODUCTS, now, cycles)
                rotate_and_store(
                    qkv, cos[first * half :], sin[first * half :], keys, values, slot_mapping[first:end],
                    num_heads, num_kv_heads, head_dim, query[first * width :],
                )  # fmt: skip
            now = _record_elapsed(BETWEEN, now, cycles)
            attend_batch(
                query, keys, values, block_table, seq_lens, query_start_loc, attended, lse,
                num_heads, num_kv_heads, head_dim, block_size,
                scale, windows[layer], np.float32(0.0), batch_invariant, num_threads,
            )  # fmt: skip
            now = _record_elapsed(ATTENTION, now, cycles)
            for first in range(0, num_tokens, CHUNK_TOKENS):
                end = min(first + CHUNK_TOKENS, num_tokens)
                chunk, count = hidden[first * size : end * size], end - first
                product(bits, matrix[ATTENTION_OUTPUT], size, width, attended[first * width :], count, update)
                now = _record_elapsed(PRODUCTS, now, cycles)
                _add(chunk, update)
                rms_norm_rows(chunk, norm[MLP_NORM], eps, normed)
                now = _record_elapsed(BETWEEN, now, cycles)
                product(bits, matrix[GATE_UP], 2 * intermediate, size, normed, count, gate_up)
                now = _record_elapsed(PRODUCTS, now, cycles)
                silu_mul_rows(gate_up, intermediate, gated[: count * intermediate])
                now = _record_elapsed(BETWEEN, now, cycles)
                product(bits, matrix[DOWN], size, intermediate, gated, count, update)
                now = _record_elapsed(PRODUCTS, now, cycles)
                _add(chunk, update)

    return run_layers


run_int4_layers, run_bf16_layers = _compile_layers(4), _compile_layers(16)


@numba.njit(inline="always")
def _record_elapsed(part, since, cycles):
    """Give the time since the last change to whoever had it. A look at the clock takes a few nanoseconds."""
    now = clock()
    cycles[part] += now - since
    return now


@compiled()
def _add(hidden, update):
    for i in range(len(hidden)):
        hidden[i] += update[i]
