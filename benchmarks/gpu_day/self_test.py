"""The kernels of the backend that the engine would choose, held against the reference's on the CPU."""

from __future__ import annotations

import time
from collections.abc import Iterator

import torch

from benchmarks.gpu_day.context import Context
from benchmarks.gpu_day.findings import Finding, Measured, Remark
from engine.model.device import TORCH_DTYPES
from kernels.backend import select_backend
from kernels.self_test import AttentionSizes, wrong_operations

BLOCK_SIZE = 16


def run(context: Context) -> Iterator[Finding]:
    """Raises AssertionError naming the operations that are wrong, or why a card falls back to the reference."""
    started = time.perf_counter()
    chosen = select_backend("auto", context.device)
    yield Measured({"backend": chosen.name, "why": chosen.reason, "chosen after s": time.perf_counter() - started})
    if chosen.name == "reference":
        if context.on_card:
            raise AssertionError(f"the reference runs on this card: {chosen.reason}")
        yield Remark("The reference is what it would be held against: nothing is tested here.")
        return
    reference = select_backend("reference", torch.device("cpu"))
    found: list[str] = []
    for dtype in dict.fromkeys(("float32", context.dtype)):
        number_type = TORCH_DTYPES[dtype]
        sizes = AttentionSizes(*context.sizes.heads, context.sizes.head_dim, BLOCK_SIZE, number_type, number_type)
        started = time.perf_counter()
        wrong = wrong_operations(chosen, reference, context.device, sizes)
        found += [f"{name} in {dtype}" for name in wrong]
        seconds = time.perf_counter() - started
        yield Measured({"dtype": dtype, "wrong operations": ", ".join(wrong) or "none", "tested in s": seconds})
    if found:
        raise AssertionError(f"{chosen.name} gives wrong results: {', '.join(found)}")
