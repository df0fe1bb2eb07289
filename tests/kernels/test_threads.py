"""PyTorch and Numba use equally many threads, whatever each was told and whichever thread asks."""

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

pytest.importorskip("numba")
from kernels.threads import parallel_loops, threading_layer

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
@pytest.mark.slow
def test_numba_follows_torch_in_every_thread(openmp: str, numba: str, matched: str) -> None:
    assert threads_of(openmp, numba) == [matched, matched, "1 1"]


TWO_ENGINES_IN_TWO_THREADS = """
import threading
from engine import Engine, EngineConfig, SamplingParams
from kernels.threads import threading_layer
from tools.doctor.model import check_backend

tokens = []

def write():
    engine = Engine(EngineConfig(model="tiny-random", num_blocks=32))
    [output] = engine.generate([list(range(10, 80))], SamplingParams(max_tokens=48, ignore_eos=True))
    assert output.error is None, output.error
    tokens.append(output.outputs[0].token_ids)

write()
threads = [threading.Thread(target=write) for _ in range(2)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(threading_layer(), len(tokens), len(set(tokens)))
print(check_backend().found)
"""


def test_two_engines_are_serialized_on_a_threading_layer_that_is_not_thread_safe() -> None:
    """Numba's `workqueue` ended the process: "Concurrent access has been detected"."""
    environment = os.environ | {"NUMBA_THREADING_LAYER": "workqueue", "PYTHONPATH": str(ROOT)}
    program = [sys.executable, "-c", TWO_ENGINES_IN_TWO_THREADS]
    done = subprocess.run(program, env=environment, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    summary, found = done.stdout.splitlines()
    assert summary == "workqueue 3 1"
    assert found.endswith("Numba's threading layer is workqueue: engines of one process take turns at its loops.")


def test_no_serialization_on_a_thread_safe_threading_layer() -> None:
    if threading_layer() == "workqueue":
        pytest.skip("this machine has neither OpenMP nor TBB")
    first_is_inside, second_was_inside = threading.Event(), threading.Event()

    def enter() -> None:
        assert first_is_inside.wait(60)
        with parallel_loops():
            second_was_inside.set()

    other = threading.Thread(target=enter)
    other.start()
    with parallel_loops():
        first_is_inside.set()
        assert second_was_inside.wait(60)
    other.join()
