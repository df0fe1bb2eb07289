"""One thread pool for PyTorch and Numba, at one size.

On Linux both run on the same OpenMP library. Its pool is torn down and built again whenever a parallel loop asks for
fewer threads than the one before: measured, a product of 16 rows followed by a small loop took 0.24 ms with two
threads in both and 1 to 2 ms with two in one and one in the other. A step does so hundreds of times.
"""

import threading
from contextlib import AbstractContextManager, nullcontext

import numba
import torch

_matched = threading.local()
_turn = threading.RLock()
_at_once = nullcontext()


def match_threads() -> int:
    """Give Numba's loops, in this thread, as many threads as PyTorch's; returns how many.

    Numba's most is fixed when it starts (NUMBA_NUM_THREADS): where that is fewer, PyTorch comes down to it.
    """
    count = torch.get_num_threads()
    if getattr(_matched, "count", 0) != count:
        _matched.count = count = min(count, numba.config.NUMBA_NUM_THREADS)
        numba.set_num_threads(count)
        torch.set_num_threads(count)  # after Numba, whose start sets the library's number to its own most
    return count


def threading_layer() -> str:
    """What runs Numba's parallel loops: "omp", "tbb" or "workqueue". Raises ValueError where none can be loaded."""
    match_threads()
    return numba.threading_layer()  # type: ignore[no-any-return]


def is_thread_safe() -> bool:
    """Whether two threads may run parallel loops at once.

    `workqueue`, what is left where there is neither OpenMP nor TBB (usual on macOS), aborts the process then.
    """
    return threading_layer() != "workqueue"


def parallel_loops() -> AbstractContextManager[object]:
    """Enter it around each call of compiled code with parallel loops: as many threads as PyTorch's, and one caller at
    a time where the threading layer demands that. Elsewhere nobody waits."""
    return _at_once if is_thread_safe() else _turn
