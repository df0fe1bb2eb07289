"""What every Triton kernel takes on every chip: registers, shared memory, spills, tensor-core work. Needs no GPU.

Usage: python -m benchmarks.kernel_resources [--json] [--chip cuda90 ...] [--head-dim 64 128 ...] [--jobs 2]
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict
from typing import TYPE_CHECKING

from benchmarks.chips import CHIP, CHIPS, Chip
from benchmarks.tables import Row, print_table, progress, show

if TYPE_CHECKING:
    from benchmarks.kernel_builds import Build, Resources

HALF_PRECISION_DIMS = (64, 128, 256)
FLOAT32_DIMS = (64, 80, 96, 112, 128, 256)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")
    parser.add_argument("--chip", nargs="+", choices=CHIP, default=list(CHIP), metavar="NAME", help=", ".join(CHIP))
    parser.add_argument("--head-dim", nargs="+", type=int, choices=FLOAT32_DIMS, default=FLOAT32_DIMS)
    parser.add_argument("--jobs", type=int, default=2, help="compilers at work at the same time")
    options = parser.parse_args()
    os.environ["TRITON_INTERPRET"] = "0"  # read when the kernels are imported: an interpreted one has no binary
    from benchmarks.kernel_builds import compile_kernel

    builds = [build for name in options.chip for build in builds_of(CHIP[name]) if build.head_dim in options.head_dim]
    rows = []
    with ProcessPoolExecutor(options.jobs) as compilers:
        for resources in compilers.map(compile_kernel, builds):
            rows.append(row_of(resources))
            if len(rows) % 20 == 0:
                progress(f"{len(rows)} of {len(builds)} kernels compiled")
    command = f"python -m benchmarks.kernel_resources {' '.join(sys.argv[1:])}".rstrip()
    if options.json:
        show(rows, as_json=True, command=command)
    else:
        show([limits_of(chip) for chip in CHIPS if chip.name in options.chip], as_json=False, command=command)
        print()
        print_table(rows)


def builds_of(chip: Chip) -> Iterator[Build]:
    """Every tile table entry of the attention kernels, one of them with all options, and the small kernels."""
    from benchmarks.kernel_builds import Build

    halves = ("float16", "bfloat16") if chip.has_bfloat16 else ("float16",)
    dims = {**dict.fromkeys(halves, HALF_PRECISION_DIMS), "float32": FLOAT32_DIMS}
    for kernel in ("prefill", "decode"):
        yield Build(kernel, chip.name, halves[-1], 128, group=7, block_size=5, sliding_window=64, soft_cap=True)
        for dtype, head_dims in dims.items():
            for head_dim in head_dims:
                yield Build(kernel, chip.name, dtype, head_dim)
    for kernel in ("merge", "rotary_write_kv", "copy_blocks", "add_rms_norm", "silu_mul", "argmax_logsumexp"):
        yield Build(kernel, chip.name, halves[-1], 128)


def row_of(resources: Resources) -> Row:
    row = asdict(resources)
    spills = bool(resources.spilled_bytes or resources.spilled_scalars)
    return row | {"why it spills": why_it_spills(resources) if spills else ""}


def why_it_spills(resources: Resources) -> str:
    """Why the registers that spill in this build are left so; empty where nobody has said, which a test refuses."""
    chip = CHIP[resources.chip]
    if chip.tables == "rdna" and (resources.head_dim == 256 or resources.dtype == "float32"):
        return "256 registers a thread, and no smaller tile: 16 rows and 16 keys are a product's least"
    if resources.dtype == "float32" and resources.head_dim in (80, 96, 112) and not chip.is_amd:
        return "padded to 128 and masked, at 255 registers; smaller tiles would slow head_dim 128 too"
    return ""


def limits_of(chip: Chip) -> Row:
    return {
        "chip": chip.name,
        "cards": chip.cards,
        "tiles": chip.tables,
        "registers of a thread": chip.max_registers,
        "of a program": chip.max_program_registers,
        "shared bytes": chip.max_shared_bytes,
        "tensor cores": chip.without_tensor_cores or "used",
    }


if __name__ == "__main__":
    main()
