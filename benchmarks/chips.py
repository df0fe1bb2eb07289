"""The GPUs that the Triton kernels are compiled for, and what a kernel may take on each. Imports no Triton.

Sources of the limits, each compared with its figure here. NVIDIA: the architecture traits of CUDA's core libraries
(github.com/NVIDIA/cccl, libcudacxx/include/cuda/__device/arch_traits.h: 32-bit registers a thread and a block, the most
shared memory a block can opt into). AMD: LLVM (llvm/lib/Target/AMDGPU/Utils/AMDGPUBaseInfo.cpp: vector registers a lane
can address, and all of a SIMD; a compute unit of CDNA and a work-group processor of RDNA have four SIMDs) and its
AMDGPU.td (local memory a work-group can address).
"""

from __future__ import annotations

from dataclasses import dataclass

from kernels.paged_attention.triton_config import tables_of_amd, tables_of_nvidia


@dataclass(frozen=True)
class Chip:
    """One kind of GPU."""

    name: str
    """`cuda` with ten times the compute capability, or AMD's name of the architecture."""
    cards: str
    """Some that have it."""
    warp_size: int
    max_registers: int
    """32-bit registers of a thread."""
    max_program_registers: int
    """32-bit registers of all threads of a program."""
    max_shared_bytes: int
    """Shared memory of a program."""
    without_tensor_cores: str = ""
    """Why no kernel uses the chip's matrix units; empty where kernels do."""
    has_bfloat16: bool = True

    @property
    def is_amd(self) -> bool:
        return self.name.startswith("gfx")

    @property
    def tables(self) -> str:
        """Whose tiles the kernels take on this chip (kernels/paged_attention/triton_config.py)."""
        return tables_of_amd(self.name) if self.is_amd else tables_of_nvidia(divmod(int(self.name[4:]), 10))


def _nvidia(name: str, cards: str, shared_kib: int, **others: str | bool) -> Chip:
    return Chip(name, cards, 32, 255, 64 << 10, shared_kib << 10, **others)  # type: ignore[arg-type]


def _cdna(name: str, cards: str) -> Chip:
    return Chip(name, cards, 64, 512, 4 * 512 * 64, 64 << 10)


def _rdna(name: str, cards: str) -> Chip:
    return Chip(name, cards, 32, 256, 4 * 1536 * 32, 64 << 10)


CHIPS = (
    _nvidia(
        "cuda75", "T4, RTX 20", 64, without_tensor_cores="Triton pull request 5066 dropped them", has_bfloat16=False
    ),
    _nvidia("cuda80", "A100", 163),
    _nvidia("cuda86", "RTX 30, A10", 99),
    _nvidia("cuda89", "RTX 40, L4", 99),
    _nvidia("cuda90", "H100, H200", 227),
    _nvidia("cuda100", "B200", 227),
    _nvidia("cuda120", "RTX 50", 99),
    _cdna("gfx90a", "MI200"),
    _cdna("gfx942", "MI300"),
    _rdna("gfx1100", "RX 7900"),
    _rdna("gfx1201", "RX 9070"),
)
CHIP = {chip.name: chip for chip in CHIPS}
