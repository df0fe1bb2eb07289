"""What every Triton kernel takes on every target: registers, shared memory, spills. Needs no GPU.

Usage: python -m benchmarks.kernel_resources [--json] [--target cuda90 ...] [--head-dim 64 128 ...] [--jobs 2]
"""

import argparse
import json
import os
import sys
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from benchmarks.kernel_builds import Build, Resources

TARGETS = ("cuda80", "cuda90", "cuda100", "gfx942")
SHARED_LIMIT = {"cuda80": 163 << 10, "cuda90": 227 << 10, "cuda100": 227 << 10, "gfx942": 64 << 10}
"""Shared memory that one program may take, in bytes."""
HEAD_DIMS = (64, 128, 256)
COLUMNS = (
    "kernel", "target", "dtype", "head_dim", "group", "options", "registers", "spilled_bytes", "spilled_scalars",
    "shared_bytes", "tensor_core_instructions", "kv_load_bytes",
)  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print one JSON list instead of a table")
    parser.add_argument("--target", nargs="+", choices=TARGETS, default=TARGETS)
    parser.add_argument("--head-dim", nargs="+", type=int, choices=HEAD_DIMS, default=HEAD_DIMS)
    parser.add_argument("--jobs", type=int, default=2, help="compilers at work at the same time")
    options = parser.parse_args()
    os.environ["TRITON_INTERPRET"] = "0"  # read when the kernels are imported: an interpreted one has no binary
    from benchmarks.kernel_builds import compile_kernel

    builds = [build for target in options.target for build in builds_of(target) if build.head_dim in options.head_dim]
    rows = progress(ProcessPoolExecutor(options.jobs).map(compile_kernel, builds), len(builds))
    print_json(rows) if options.json else print_table(rows)


def builds_of(target: str) -> "Iterator[Build]":
    """Every tile table entry of the attention kernels, one of them with all options, and the small kernels."""
    from benchmarks.kernel_builds import Build

    for kernel in ("prefill", "decode"):
        yield Build(kernel, target, "bfloat16", 128, group=7, block_size=5, sliding_window=64, soft_cap=True)
        for dtype, head_dims in (("bfloat16", (64, 128, 256)), ("float16", (128,)), ("float32", (64, 128, 256))):
            for head_dim in head_dims:
                yield Build(kernel, target, dtype, head_dim)
    for kernel in ("merge", "write_kv", "rotary_write_kv", "copy_blocks"):
        yield Build(kernel, target, "bfloat16", 128)


def progress(rows: "Iterable[Resources]", total: int) -> "Iterator[Resources]":
    """Pass the rows on, counting them on stderr."""
    for done, row in enumerate(rows, 1):
        print(f"\r{done} of {total} kernels compiled", end="", file=sys.stderr, flush=True)
        yield row
    print(file=sys.stderr)


def print_json(rows: "Iterable[Resources]") -> None:
    print(json.dumps([asdict(row) for row in rows]))


def print_table(rows: "Iterable[Resources]") -> None:
    lines = [COLUMNS, *(tuple(str(asdict(row)[name]) for name in COLUMNS) for row in rows)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(COLUMNS))]
    for line in lines:
        print("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())


if __name__ == "__main__":
    main()
