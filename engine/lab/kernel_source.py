"""The line of the attention kernel that does each beat, found in its source by what it says, never by its number."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import kernels

Beat = Literal["follow table", "score", "maximum", "weights", "rescale", "sum", "values", "divide"]
"""Online softmax, beat by beat, in the order of the loop; `divide` comes once, behind it."""

_FILES = {"reference": "reference.py", "cpu": "cpu_loops.py", "triton": "triton_tile.py"}
_IN_SOFTMAX = "scores.softmax(-1)"
_MARKS: dict[str, dict[Beat, str]] = {
    "reference": {
        "follow table": "return block_ids[positions // block_size]",
        "score": 'scores = torch.einsum("qhd,khd->hqk"',
        "maximum": _IN_SOFTMAX,
        "weights": _IN_SOFTMAX,
        "rescale": _IN_SOFTMAX,
        "sum": _IN_SOFTMAX,
        "values": _IN_SOFTMAX,
        "divide": _IN_SOFTMAX,
    },
    "cpu": {
        "follow table": "offsets[k] = (U(block_table[sequence, index])",
        "score": "s0 += x * widen(key_cache[k0 + d])",
        "maximum": "maximum = max(maximum, scores[k])",
        "weights": "scores[k] = exponential(scores[k] - maximum)",
        "rescale": "shrink = exponential(row_max[row] - maximum)",
        "sum": "row_sum[row] += total",
        "values": "w0 * widen(value_cache[v0 + d]) + w1",
        "divide": "out[d] /= total",
    },
    "triton": {
        "follow table": "block = tl.load(block_ids_ptr",
        "score": "scores = tl.dot(query, keys.T",
        "maximum": "new_maximum = tl.maximum(maximum",
        "weights": "weights = tl.exp2(scores - reference",
        "rescale": "shrink = tl.exp2(maximum - reference)",
        "sum": "total = total * shrink + tl.sum(weights",
        "values": "out = tl.dot(weights.to(values.dtype), values",
        "divide": "return out / total",
    },
}


@dataclass(frozen=True, slots=True)
class SourceLine:
    """`number` counts from 1 in `file`, a path from the repository's root."""

    beat: Beat
    file: str
    number: int
    text: str


def kernel_lines(backend: str) -> tuple[SourceLine, ...]:
    """One line a beat, of the kernel of `reference`, `cpu` or `triton`. Nothing is imported: Triton may be absent.

    Raises LookupError when the source no longer has a beat's line, or has it twice.
    """
    lines = kernel_source(backend).splitlines()
    return tuple(_find(backend, beat, mark, lines) for beat, mark in _MARKS[backend].items())


def kernel_source(backend: str) -> str:
    """The whole file that `kernel_lines` points into."""
    return (_folder() / _FILES[backend]).read_text("utf-8")


def _find(backend: str, beat: Beat, mark: str, lines: list[str]) -> SourceLine:
    numbers = [number for number, line in enumerate(lines, 1) if mark in line]
    if len(numbers) != 1:
        raise LookupError(f"{_FILES[backend]} has {len(numbers)} lines with {mark!r}, not one.")
    file = f"kernels/paged_attention/{_FILES[backend]}"
    return SourceLine(beat, file, numbers[0], lines[numbers[0] - 1].strip())


def _folder() -> Path:
    return Path(next(iter(kernels.__path__))) / "paged_attention"
