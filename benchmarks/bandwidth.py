"""How fast this machine's memory is, measured in the run of what is held against it."""

from __future__ import annotations

import time
from collections.abc import Callable

import torch

TRIALS = 5
LAUNCH_CYCLES = 1_000_000
"""Half a millisecond of a GPU, which is kept busy while what is timed is being launched."""


def uncached_bytes(device: torch.device) -> int:
    """More than its caches keep: 192 MiB on a CPU, 1 GiB on a GPU."""
    return (192 if device.type == "cpu" else 1024) << 20


def copy_bandwidth(device: torch.device) -> float:
    """Bytes a second, read and written, of the best of some large copies."""
    source = torch.ones(uncached_bytes(device) // 4, dtype=torch.float32, device=device)
    target = torch.empty_like(source)
    return 2 * source.nbytes / _best_of_trials(lambda: target.copy_(source), device)


def read_bandwidth(device: torch.device) -> float:
    """Bytes a second, only read, of the best of some large sums."""
    source = torch.ones(uncached_bytes(device) // 4, dtype=torch.float32, device=device)
    return source.nbytes / _best_of_trials(lambda: source.sum(), device)


def seconds_of(run: Callable[[], object], device: torch.device) -> float:
    """One call. On a GPU: what it started there, by the GPU's own clock, without the time to launch it."""
    if device.type == "cuda":
        return _seconds_on_gpu(run)
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def _best_of_trials(run: Callable[[], object], device: torch.device) -> float:
    return min(seconds_of(run, device) for _ in range(TRIALS))


def _seconds_on_gpu(run: Callable[[], object]) -> float:
    before, after = (torch.cuda.Event(enable_timing=True) for _ in range(2))  # type: ignore[no-untyped-call]
    torch.cuda.synchronize()
    torch.cuda._sleep(LAUNCH_CYCLES)  # type: ignore[no-untyped-call]
    before.record()
    run()
    after.record()
    after.synchronize()
    return float(before.elapsed_time(after)) / 1e3
