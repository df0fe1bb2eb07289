"""Where each backend's attention kernel does each part of online softmax, and how many keys it takes at a time.

For pages that show the kernel: a part is named by file, function and what stands in its line. Every function here
takes the `key_cache` of one layer, [num_blocks, block_size, num_kv_heads, head_dim], and the model's num_heads, and
says what the kernel does with one query token on that device.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from torch import Tensor

SoftmaxPart = Literal["follow table", "score", "maximum", "weights", "rescale", "sum", "values", "divide"]
"""The parts of online softmax, in the order of the loop; `divide` comes once, behind it."""

Place = tuple[str, str, str]
"""A file of this folder, a function in it, and what stands in one line of that function and in no other."""


@dataclass(frozen=True)
class AttentionOutline:
    """Where a kernel does each part of online softmax, and how many keys it takes at a time."""

    places: Mapping[SoftmaxPart, Place]
    keys_at_once: int | None
    """How many keys the kernel scores before it takes their maximum; None for all."""


_SOFTMAX: Place = ("reference.py", "paged_attention", "scores.softmax(-1)")
REFERENCE: dict[SoftmaxPart, Place] = {
    "follow table": ("reference.py", "_slots_of", "block_ids["),
    "score": ("reference.py", "_scores", "torch.einsum("),
    "maximum": _SOFTMAX,
    "weights": _SOFTMAX,
    "rescale": _SOFTMAX,
    "sum": _SOFTMAX,
    "values": _SOFTMAX,
    "divide": _SOFTMAX,
}
CPU: dict[SoftmaxPart, Place] = {
    "follow table": ("cpu_decode.py", "_follow_table", "offsets[k] ="),
    "score": ("cpu_decode.py", "_score", "s0 +="),
    "maximum": ("cpu_decode.py", "_online_softmax_update", "max("),
    "weights": ("cpu_decode.py", "_online_softmax_update", "scores[k] = exponential("),
    "rescale": ("cpu_decode.py", "_online_softmax_update", "shrink = "),
    "sum": ("cpu_decode.py", "_online_softmax_update", "row_sum[row] +="),
    "values": ("cpu_decode.py", "_add_values", "w0 * "),
    "divide": ("cpu_decode.py", "_attend_item", "/= total"),
}
CPU_IN_REGISTERS: dict[SoftmaxPart, Place] = CPU | {
    "score": ("cpu_decode_avx512.py", "score_strip", "b.fma("),
    "values": ("cpu_decode_avx512.py", "add_value_rows", "b.fma("),
}
TRITON: dict[SoftmaxPart, Place] = {
    "follow table": ("triton_tile.py", "attend_keys", "tl.load(block_ids_ptr"),
    "score": ("triton_tile.py", "attend_keys", "tl.dot(query"),
    "maximum": ("triton_tile.py", "attend_keys", "tl.maximum("),
    "weights": ("triton_tile.py", "attend_keys", "weights = "),
    "rescale": ("triton_tile.py", "attend_keys", "shrink = "),
    "sum": ("triton_tile.py", "attend_keys", "tl.sum("),
    "values": ("triton_tile.py", "attend_keys", "tl.dot(weights"),
    "divide": ("triton_tile.py", "attend_keys", "return out / total"),
}


def reference_outline(_key_cache: Tensor, _num_heads: int) -> AttentionOutline:
    """Of reference.py, on any device. `_key_cache` [num_blocks, block_size, num_kv_heads, head_dim]."""
    return AttentionOutline(REFERENCE, None)


def cpu_outline(key_cache: Tensor, _num_heads: int) -> AttentionOutline:
    """Of the CPU kernel: registers of 512 bits have loops of their own for one head_dim.

    `key_cache` [num_blocks, block_size, num_kv_heads, head_dim].
    """
    from kernels.paged_attention.cpu_decode_avx512 import CHUNK, fits_registers

    return AttentionOutline(CPU_IN_REGISTERS if fits_registers(key_cache.shape[-1]) else CPU, CHUNK)


def triton_outline(key_cache: Tensor, num_heads: int) -> AttentionOutline:
    """Of the Triton decode kernel, on the device of `key_cache` [num_blocks, block_size, num_kv_heads, head_dim]."""
    from kernels.paged_attention.triton_config import DECODE, architecture_of, next_power_of_two, tiles_for

    _, _, num_kv_heads, head_dim = key_cache.shape
    architecture, group = architecture_of(key_cache.device), num_heads // num_kv_heads
    tiles = tiles_for(DECODE, architecture, key_cache.element_size(), next_power_of_two(head_dim), group)
    return AttentionOutline(TRITON, tiles.keys)
