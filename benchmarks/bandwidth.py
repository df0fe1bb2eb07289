"""How fast this machine's memory is, measured in the run of what is held against it."""

from __future__ import annotations

import time
from collections.abc import Callable

import torch

UNCACHED_BYTES = 192 << 20
"""More than any processor cache keeps."""
TRIALS = 5


def copy_bandwidth(device: torch.device) -> float:
    """Bytes a second, read and written, of the best of some large copies."""
    source = torch.ones(UNCACHED_BYTES // 4, dtype=torch.float32, device=device)
    target = torch.empty_like(source)
    return 2 * UNCACHED_BYTES / _best_of_trials(lambda: target.copy_(source), device)


def read_bandwidth(device: torch.device) -> float:
    """Bytes a second, only read, of the best of some large sums."""
    source = torch.ones(UNCACHED_BYTES // 4, dtype=torch.float32, device=device)
    return UNCACHED_BYTES / _best_of_trials(lambda: source.sum(), device)


def seconds_of(run: Callable[[], object], device: torch.device) -> float:
    """One call, to the end of what it started on a GPU."""
    _finish(device)
    start = time.perf_counter()
    run()
    _finish(device)
    return time.perf_counter() - start


def _best_of_trials(run: Callable[[], object], device: torch.device) -> float:
    return min(seconds_of(run, device) for _ in range(TRIALS))


def _finish(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize()
