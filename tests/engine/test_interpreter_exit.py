"""Python's exit waits for a daemon thread that computes, and lets none begin to."""

from __future__ import annotations

import subprocess
import sys
import threading

import pytest

from engine.model.interpreter_exit import Computing
from tests.helpers.app_server import ROOT

STEP_FOR_EVER = """
import threading, time, torch
from engine import Engine, EngineConfig, SamplingParams

engine = Engine(EngineConfig(model="tiny-random", attention_backend="reference", num_blocks=64))
engine.add_request([10, 11], SamplingParams(max_tokens=400, ignore_eos=True))
inside, run = threading.Event(), engine.components.runner.run

def long_run(items):
    inside.set()
    end = time.monotonic() + 1  # less than the exit waits, however busy the machine
    while time.monotonic() < end:
        torch.ones(1).view(1)
    return run(items)

engine.components.runner.run = long_run

def step_for_ever():
    while True:
        engine.step()

threading.Thread(target=step_for_ever, daemon=True).start()
inside.wait()
"""


def test_a_program_that_ends_while_a_daemon_thread_steps_an_engine_does_not_abort() -> None:
    """It did: "terminate called without an active exception", SIGABRT."""
    done = subprocess.run([sys.executable, "-c", STEP_FOR_EVER], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_exit_waits_for_running_computations_and_starts_none() -> None:
    computing = Computing()
    inside, may_leave, outcome = threading.Event(), threading.Event(), list[str]()

    def compute() -> None:
        with computing:
            inside.set()
            may_leave.wait(60)
        try:
            with computing:
                outcome.append("began")
        except SystemExit:
            outcome.append("ended")

    thread = threading.Thread(target=compute)
    thread.start()
    assert inside.wait(60)
    assert not computing.close(seconds=0.0)
    may_leave.set()
    assert computing.close(seconds=60.0)
    thread.join()
    assert outcome == ["ended"]
    with computing:
        pass  # the main thread may: what it registered for the exit may step an engine


@pytest.mark.parametrize("error", [ValueError, SystemExit])
def test_an_exception_leaves_the_computing_block(error: type[BaseException]) -> None:
    computing = Computing()
    with pytest.raises(error), computing:
        raise error
    assert computing.close(seconds=0.0)
