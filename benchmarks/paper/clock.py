"""Time that other programs on the machine disturb little.

On a CPU it is the processor's time of one thread: a program that waits for its turn is not charged for waiting. On a
GPU, from an idle card to an idle card.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import contextmanager
from typing import TypeVar

import torch

Name = TypeVar("Name", bound=Hashable)
ROUNDS = 5


def times_in_turns(cases: Mapping[Name, Callable[[], object]], rounds: int = ROUNDS) -> dict[Name, list[float]]:
    """Seconds of each case in each round; the cases take turns, and a round before them warms up."""
    taken: dict[Name, list[float]] = {name: [] for name in cases}
    with _one_thread():
        for number in range(rounds + 1):
            for name, run in cases.items():
                seconds = _seconds_of(run)
                if number:
                    taken[name].append(seconds)
    return taken


@contextmanager
def _one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _seconds_of(run: Callable[[], object]) -> float:
    if not torch.cuda.is_available():
        started = time.process_time()
        run()
        return time.process_time() - started
    torch.cuda.synchronize()
    started = time.perf_counter()
    run()
    torch.cuda.synchronize()
    return time.perf_counter() - started
