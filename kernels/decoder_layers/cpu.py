"""All decoder layers in one compiled call (each operation's own twin gives the meaning).

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

from kernels.grouped_product import vnni
from kernels.grouped_product.cpu import multiply_four_bits
from kernels.numba_math import clock, compiled
from kernels.paged_attention.cpu_batch import attend_batch
from kernels.rms_norm.cpu import normalise_rows
from kernels.rotary_write_kv.cpu import turn_and_store
from kernels.silu_mul.cpu import gate_rows
from kernels.tiled_product import bf16
from kernels.tiled_product.cpu import multiply_tiles

PIECE = 1024
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
        multiply_four_bits(packed, rows // vnni.ROWS, columns // vnni.GROUP, x, num_tokens, out)

    def over_sixteen_bits(bits, packed, rows, columns, x, num_tokens, out):
        multiply_tiles(packed, rows // bf16.ROWS, columns // 2, x, num_tokens, out)

    return over_four_bits if bits.literal_value == 4 else over_sixteen_bits


def _layers(bits: int) -> Any:
    """The layers over weights of four bits (grouped_product) or sixteen (tiled_product)."""

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
        num_threads,
        ticks,  # [3] int64: what each of PARTS took is added, in ticks of the processor's clock
    ):
        num_heads, num_kv_heads, head_dim, inner = shape
        num_tokens, size = len(slot_mapping), norms.shape[2]
        width, half = num_heads * head_dim, head_dim // 2
        all_heads = width + 2 * num_kv_heads * head_dim
        scale = np.float32(1.0 / np.sqrt(head_dim))
        query = np.empty(num_tokens * width, np.float32)
        read = np.empty(num_tokens * width, np.float32)
        lse = np.empty(num_tokens * num_heads, np.float32)
        most = min(num_tokens, PIECE)
        normed = np.empty(most * size, np.float32)
        qkv = np.empty(most * all_heads, np.float32)
        gate_up = np.empty(most * 2 * inner, np.float32)
        gated = np.empty(most * inner, np.float32)
        more = np.empty(most * size, np.float32)
        now = clock()
        for layer in range(len(weights)):
            matrix, norm, keys, values = weights[layer], norms[layer], key_cache[layer], value_cache[layer]
            for first in range(0, num_tokens, PIECE):
                end = min(first + PIECE, num_tokens)
                piece, count = hidden[first * size : end * size], end - first
                normalise_rows(piece, norm[ATTENTION_NORM], eps, normed)
                now = _book(BETWEEN, now, ticks)
                product(bits, matrix[QKV], all_heads, size, normed, count, qkv)
                now = _book(PRODUCTS, now, ticks)
                turn_and_store(
                    qkv, cos[first * half :], sin[first * half :], keys, values, slot_mapping[first:end],
                    num_heads, num_kv_heads, head_dim, query[first * width :],
                )  # fmt: skip
            now = _book(BETWEEN, now, ticks)
            attend_batch(
                query, keys, values, block_table, seq_lens, query_start_loc, num_heads, num_kv_heads, head_dim,
                block_size, scale, windows[layer], np.float32(0.0), num_threads, read, lse,
            )  # fmt: skip
            now = _book(ATTENTION, now, ticks)
            for first in range(0, num_tokens, PIECE):
                end = min(first + PIECE, num_tokens)
                piece, count = hidden[first * size : end * size], end - first
                product(bits, matrix[ATTENTION_OUTPUT], size, width, read[first * width :], count, more)
                now = _book(PRODUCTS, now, ticks)
                _add(piece, more)
                normalise_rows(piece, norm[MLP_NORM], eps, normed)
                now = _book(BETWEEN, now, ticks)
                product(bits, matrix[GATE_UP], 2 * inner, size, normed, count, gate_up)
                now = _book(PRODUCTS, now, ticks)
                gate_rows(gate_up, inner, gated[: count * inner])
                now = _book(BETWEEN, now, ticks)
                product(bits, matrix[DOWN], size, inner, gated, count, more)
                now = _book(PRODUCTS, now, ticks)
                _add(piece, more)

    return run_layers


run_four_bit_layers, run_bfloat16_layers = _layers(4), _layers(16)


@numba.njit(inline="always")
def _book(part, since, ticks):
    """Give the time since the last change to whoever had it. A look at the clock takes a few nanoseconds."""
    now = clock()
    ticks[part] += now - since
    return now


@compiled()
def _add(hidden, more):
    for i in range(len(hidden)):
        hidden[i] += more[i]
