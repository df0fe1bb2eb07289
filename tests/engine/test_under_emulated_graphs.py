"""The tests of the engine, the lab, the live page and rooms again, with every decode step recorded and replayed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.helpers.app_server import ROOT

PLUGIN = "tests.helpers.emulated_graphs_plugin"
ENGINE = ("tests/engine", "tests/kernels/test_engine_backends.py", "tests/inspect")
LAB = ("tests/course", "tests/app/test_experiments.py", "tests/app/test_experiment_questions.py")
LIVE_AND_ROOMS = (
    "tests/app/test_live_engine.py", "tests/app/test_live_tools.py", "tests/app/test_room_page.py",
    "tests/views/test_engine_session.py", "tests/views/test_room.py", "tests/views/test_sessions.py",
)  # fmt: skip
MIN_REPLAYS = 100
"""Fewer would say that hardly a step ran as a graph."""


@pytest.mark.slow
@pytest.mark.parametrize("paths", [ENGINE, LAB, LIVE_AND_ROOMS], ids=["engine", "lab", "live and rooms"])
def test_everything_passes_as_on_a_gpu_with_graphs(paths: tuple[str, ...], tmp_path: Path) -> None:
    replays = tmp_path / "replays.txt"
    command = [sys.executable, "-m", "pytest", "-p", PLUGIN, "-m", "not slow and not embedded and not gpu", *paths]
    command += ["--ignore=tests/engine/test_interpreter_exit.py"]  # its engines run in programs of their own
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_XDIST")}
    done = subprocess.run(
        command, cwd=ROOT, env={**environment, "REPLAYS_FILE": str(replays)}, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout[-10_000:] + done.stderr[-2000:]
    assert sum(map(int, replays.read_text("utf-8").split())) > MIN_REPLAYS
