"""Compile the Triton kernels for GPUs that are not here, and read what the compilers say about the result.

The compile-time arguments come from the same code that launches the kernels, so what is measured is what runs.
TRITON_INTERPRET must be off before this module is imported: an interpreted kernel cannot be compiled.
"""

import re
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from benchmarks.chips import CHIP, Chip
from kernels.add_rms_norm import triton_kernel as add_rms_norm
from kernels.argmax_logsumexp import triton_kernel as argmax_logsumexp
from kernels.copy_blocks.triton_kernel import TILE, copy_blocks_kernel
from kernels.paged_attention.triton_config import DECODE, PREFILL
from kernels.paged_attention.triton_decode import decode_kernel, merge_kernel
from kernels.paged_attention.triton_kernel import Geometry
from kernels.paged_attention.triton_prefill import prefill_kernel
from kernels.rotary_write_kv.triton_kernel import padded, rotary_write_kv_kernel
from kernels.silu_mul import triton_kernel as silu_mul

ELEMENT = {"bfloat16": ("*bf16", 2), "float16": ("*fp16", 2), "float32": ("*fp32", 4)}
SPLITS = 8
HIDDEN_SIZE, INTERMEDIATE_SIZE, VOCAB_SIZE = 4096, 14_336, 128_256
"""Of the small kernels, which do not depend on the heads: Llama 3 8B."""


@dataclass(frozen=True)
class Build:
    """One kernel in one configuration."""

    kernel: str
    chip: str
    dtype: str
    head_dim: int
    group: int = 3
    num_kv_heads: int = 3
    block_size: int = 16
    sliding_window: int | None = None
    soft_cap: bool = False

    @property
    def options(self) -> str:
        return "window, soft cap" if self.soft_cap else ""


@dataclass(frozen=True)
class Resources:
    """What a compiled kernel takes on its chip."""

    kernel: str
    chip: str
    dtype: str
    head_dim: int
    group: int
    options: str
    threads: int
    """Of a program."""
    registers: int
    """A thread's; on CDNA of both register files."""
    spilled_bytes: int
    """Local memory a thread: stack and spills."""
    spilled_scalars: int
    """AMD: scalar registers kept in vector registers for want of room."""
    shared_bytes: int
    tensor_core_instructions: int
    kv_load_bytes: list[int]
    """The widths of the loads that read keys and values from the cache."""


def compile_kernel(build: Build) -> Resources:
    """Compile one configuration and read its resources from the binary and the assembly."""
    function, constants = _constants(build)
    options = {name: constants.pop(name) for name in ("num_warps", "num_stages") if name in constants}
    names = function.arg_names
    signature = {name: "constexpr" if name in constants else _type_of(name, build) for name in names}
    # The launcher would find these arguments divisible by 16: tensors are aligned, and so are whole rows of heads.
    aligned = [i for i, name in enumerate(names) if name.endswith("_ptr") or name in _ROW_STRIDES]
    attributes = {(i,): [["tt.divisibility", 16]] for i in aligned}
    source = ASTSource(function, signature, constants, attributes)
    chip = CHIP[build.chip]
    compiled = triton.compile(source, target=_gpu_target(chip), options=options)
    read = _read_amd if chip.is_amd else _read_nvidia
    identity = (build.kernel, build.chip, build.dtype, build.head_dim, build.group, build.options)
    threads = compiled.metadata.num_warps * chip.warp_size
    return Resources(*identity, threads, shared_bytes=compiled.metadata.shared, **read(compiled.asm))


def _gpu_target(chip: Chip) -> GPUTarget:
    if chip.is_amd:
        return GPUTarget("hip", chip.name, chip.warp_size)
    return GPUTarget("cuda", int(chip.name.removeprefix("cuda")), chip.warp_size)


def _constants(build: Build) -> tuple[Any, dict[str, Any]]:
    """The kernel's function, and its compile-time arguments with the launch options among them."""
    _, element_size = ELEMENT[build.dtype]
    heads = build.group * build.num_kv_heads
    geometry = Geometry(
        CHIP[build.chip].tables,
        element_size,
        heads,
        build.num_kv_heads,
        build.head_dim,
        build.block_size,
        build.sliding_window,
    )
    row = build.num_kv_heads * build.head_dim
    soft_cap = {} if build.soft_cap else {"soft_cap": None}
    dim = {"HEAD_DIM": build.head_dim, "DIM": geometry.padded_dim}
    kernels: dict[str, tuple[Any, dict[str, Any]]] = {
        "prefill": (prefill_kernel, {**geometry.constants(PREFILL), **soft_cap}),
        "decode": (decode_kernel, {**geometry.constants(DECODE), **soft_cap, "SPLITS": SPLITS}),
        "merge": (merge_kernel, {**dim, "SPLITS": SPLITS}),
        "rotary_write_kv": (
            rotary_write_kv_kernel,
            {
                "NUM_HEADS": heads, "NUM_KV_HEADS": build.num_kv_heads, "HALF": build.head_dim // 2,
                **padded(heads + 2 * build.num_kv_heads, build.head_dim),
            },
        ),
        "copy_blocks": (copy_blocks_kernel, {"BLOCK_ELEMENTS": build.block_size * row, "ALIGNMENT": 16, "TILE": TILE}),
        "add_rms_norm": (add_rms_norm.add_rms_norm_kernel, {"SIZE": HIDDEN_SIZE, **add_rms_norm.padded(HIDDEN_SIZE)}),
        "silu_mul": (silu_mul.silu_mul_kernel, {"SIZE": INTERMEDIATE_SIZE, "TILE": silu_mul.TILE}),
        "argmax_logsumexp": (
            argmax_logsumexp.argmax_logsumexp_kernel,
            {"VOCAB_SIZE": VOCAB_SIZE, **argmax_logsumexp.tiles(VOCAB_SIZE)},
        ),
    }  # fmt: skip
    return kernels[build.kernel]


_INT32_POINTERS = {"block_table_ptr", "seq_lens_ptr", "query_start_loc_ptr"}
_INT64_POINTERS = {"slot_mapping_ptr", "address_ptr", "src_to_dst_ptr", "position_ptr"}
_ROW_STRIDES = {"query_stride"}
_FLOAT32_POINTERS = {"lse_ptr", "cos_ptr", "sin_ptr", "split_out_ptr", "split_lse_ptr", "logits_ptr"}


def _type_of(name: str, build: Build) -> str:
    """The type that the launcher would see in a run-time argument."""
    if name in _INT32_POINTERS:
        return "*i32"
    if name in _INT64_POINTERS:
        return "*i64"
    if name in _FLOAT32_POINTERS or (build.kernel, name) == ("decode", "out_ptr"):
        return "*fp32"
    if (build.kernel, name) == ("argmax_logsumexp", "out_ptr"):
        return "*fp64"
    if name.endswith("_ptr"):
        return ELEMENT[build.dtype][0]
    return "fp32" if name in ("scale", "soft_cap", "eps") else "i32"


def _read_nvidia(asm: dict[str, Any]) -> dict[str, Any]:
    """Registers and local memory from the cubin; loads and instructions from the PTX."""
    tool = Path(triton.__file__).parent / "backends/nvidia/bin/cuobjdump"
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(asm["cubin"])
        file.flush()
        report = subprocess.run(
            [tool, "--dump-resource-usage", file.name], capture_output=True, text=True, check=True
        ).stdout
    used = {name: int(count) for name, count in re.findall(r"(REG|STACK|LOCAL):(\d+)", report)}
    return {
        "registers": used["REG"],
        "spilled_bytes": used["STACK"] + used["LOCAL"],
        "spilled_scalars": 0,
        "tensor_core_instructions": len(re.findall(r"\b(?:mma\.sync|wgmma\.mma_async|tcgen05\.mma)\.", asm["ptx"])),
        "kv_load_bytes": _widths_at_kv_loads(asm["ptx"]),
    }


def _read_amd(asm: dict[str, Any]) -> dict[str, Any]:
    """All from the assembly, whose metadata lists what the kernel takes."""
    text = asm["amdgcn"]

    def listed(name: str) -> int:
        match = re.search(rf"\.{name}:\s+(\d+)", text)
        assert match, f"the assembly lists no {name}"
        return int(match[1])

    return {
        "registers": listed("vgpr_count"),
        "spilled_bytes": listed("private_segment_fixed_size"),
        "spilled_scalars": listed("sgpr_spill_count"),
        "tensor_core_instructions": len(re.findall(r"^\s*v_w?mf?ma", text, re.M)),
        "kv_load_bytes": _widths_at_kv_loads(text),
    }


def _widths_at_kv_loads(text: str) -> list[int]:
    """The widths, in bytes, of the global loads that the assembly attributes to reading the cache.

    Both compilers mark each instruction with the source line it came from, as a comment on a `.loc` directive.
    """
    source = Path(__file__).parents[1] / "kernels/paged_attention/triton_tile.py"
    lines = source.read_text().splitlines()
    marks = tuple(
        f"{source.name}:{i}:" for i, line in enumerate(lines, 1) if re.search(r"tl\.load\((key|value)_cache_ptr", line)
    )
    assert len(marks) == 2, "the inner loop reads keys and values in one place each"
    widths, at_kv_load = set(), False
    for line in text.splitlines():
        if line.lstrip().startswith(".loc"):
            at_kv_load = any(mark in line for mark in marks)
        elif at_kv_load and (width := _load_width(line)):
            widths.add(width)
    return sorted(widths)


def _load_width(instruction: str) -> int:
    """How many bytes a thread loads from global memory by this instruction; 0 if it is no such load."""
    if match := re.search(r"cp\.async\.c[ag]\.shared\.global .*\], (0x\w+)", instruction):
        return int(match[1], 16)
    if match := re.search(r"ld\.global\S*?(?:\.v(\d))?\.b(\d+) ", instruction):
        return int(match[1] or 1) * int(match[2]) // 8
    if match := re.search(r"\b(?:global|buffer)_load_(dwordx(\d)|dword|ushort|short_d16\w*)\b", instruction):
        return 4 * int(match[2] or 1) if match[1].startswith("dword") else 2
    if match := re.search(r"\b(?:global|buffer)_load_(?:d16_)?(?:hi_)?[bu](\d+)\b", instruction):  # RDNA's names
        return int(match[1]) // 8
    return 0
