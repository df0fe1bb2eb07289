"""PyTorch and Numba use equally many threads, whatever each was told and whichever thread asks."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("numba")
ROOT = Path(__file__).resolve().parents[2]

ATTEND_IN_TWO_THREADS = """
import threading
import numba, torch
from kernels.paged_attention.cpu import paged_attention

def attend():
    query, cache = torch.ones(1, 1, 16), torch.ones(1, 1, 1, 16)
    lengths, starts = torch.tensor([1], dtype=torch.int32), torch.tensor([0, 1], dtype=torch.int32)
    paged_attention(query, cache, cache, torch.zeros(1, 1, dtype=torch.int32), lengths, starts, scale=1.0)
    print(torch.get_num_threads(), numba.get_num_threads())

attend()
other = threading.Thread(target=attend)
other.start()
other.join()
torch.set_num_threads(1)
attend()
"""


def threads_of(openmp: str, numba: str) -> list[str]:
    """`torch numba` of the first thread, of another one, and after torch was set to one thread."""
    environment = os.environ | {"OMP_NUM_THREADS": openmp, "NUMBA_NUM_THREADS": numba, "PYTHONPATH": str(ROOT)}
    program = [sys.executable, "-c", ATTEND_IN_TWO_THREADS]
    done = subprocess.run(program, env=environment, cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


@pytest.mark.parametrize(
    "openmp, numba, matched", [("2", "3", "2 2"), ("3", "2", "2 2"), ("1", "2", "1 1")], ids=["more", "fewer", "one"]
)
def test_numba_follows_torch_in_every_thread(openmp: str, numba: str, matched: str) -> None:
    assert threads_of(openmp, numba) == [matched, matched, "1 1"]
