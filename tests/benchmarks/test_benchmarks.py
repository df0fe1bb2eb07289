"""The benchmarks measure what they say: exclusive parts, engines that decode, one row a case."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from benchmarks.scaling import Case, decoding_engine, memory_of_a_request, row_of
from benchmarks.start_up import row_of as start_up_row
from benchmarks.step_breakdown import PARTS, clock_of, measure, put_stopwatches
from benchmarks.stopwatch import Stopwatch
from engine import EngineConfig, SamplingParams
from tests.helpers.emulated_graphs import emulated_engine
from tests.helpers.models import loaded

ROOT = Path(__file__).resolve().parents[2]


def test_time_is_attributed_to_the_innermost_function() -> None:
    now = [0.0]
    watch = Stopwatch(clock=lambda: now[0])

    def wait(seconds: float) -> None:
        now[0] += seconds

    inner = watch.timed("inner", wait)

    def outer() -> str:
        wait(1.0)
        inner(2.0)
        wait(4.0)
        return "done"

    wait(100.0)
    assert watch.timed("outer", outer)() == "done"
    wait(100.0)
    assert watch.seconds == {"outer": 5.0, "inner": 2.0}


def test_a_breakdown_names_every_part_and_they_add_up() -> None:
    row = measure(loaded("tiny-random"), "cpu", batch=2, context=9, steps=3)
    parts = {part: row[f"{part} ms"] for part in PARTS}
    assert all(isinstance(time, float) and time > 0 for time in parts.values())
    assert sum(parts.values()) == pytest.approx(row["watched ms"], abs=0.02)  # type: ignore[arg-type]


def test_a_request_holds_whole_blocks_and_uses_its_tokens() -> None:
    model = loaded("tiny-random")
    engine = decoding_engine(model, "reference", Case(batch=2, context=6, pool=3), block_size=4, num_tokens=5)
    per_token = 2 * 2 * 2 * 16 * 4  # keys and values, layers, heads, head_dim, bytes
    assert engine.config.num_blocks == 3 * 2 * 3
    assert memory_of_a_request(engine) == (2 * 4 * per_token, 6 * per_token)


def test_a_row_is_compared_with_the_shortest_context_of_its_batch_and_pool() -> None:
    seconds = {Case(1, 100, 1): [0.002, 0.004, 0.009], Case(4, 100, 1): [0.1], Case(1, 400, 1): [0.006]}
    assert row_of(Case(1, 400, 1), seconds, (2048.0, 1024.0), bandwidth=512_000.0) == {
        "batch": 1, "context": 400, "pool": 1, "step ms": 6.0, "beside the first": 1.5, "KV floor ms": 2.0,
        "KB a request": 2.0, "KB used": 1.0,
    }  # fmt: skip


def test_start_up_takes_medians_of_parts_and_whole() -> None:
    runs = [[0.1, 1.0, 1.0, 0.0, 0.5], [0.1, 2.0, 1.0, 0.0, 0.4], [0.1, 3.0, 4.0, 0.0, 0.1]]
    row = start_up_row(runs, "int4")
    assert (row["import s"], row["weights s"], row["first token s"], row["whole s"]) == (2.0, 1.0, 0.4, 3.5)


def test_json_carries_the_command_the_machine_and_the_rows() -> None:
    command = ["-m", "benchmarks.scaling", "--json", "--model", "tiny-random", "--batch", "1", "--context", "8"]
    done = subprocess.run(
        [sys.executable, *command, "--pool", "1", "--steps", "2", "--rounds", "1"],
        cwd=ROOT, env=os.environ | {"PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    told = json.loads(done.stdout)
    assert told["command"].startswith("python -m benchmarks.scaling --json")
    assert {"date", "processor", "GPU", "versions"} == told["machine"].keys()
    assert [(row["batch"], row["context"]) for row in told["rows"]] == [(1, 8)]
    assert "round 1 of 1" in done.stderr


def test_a_breakdown_times_the_parts_of_steps_that_would_be_replayed() -> None:
    engine, graphs = emulated_engine(EngineConfig(model="tiny-random", num_blocks=8, attention_backend="reference"))
    engine.add_request([1, 2, 3], SamplingParams(max_tokens=8, ignore_eos=True))
    for _ in range(3):
        engine.step()
    assert graphs.num_replays == 2
    watch = Stopwatch()
    step = put_stopwatches(engine, watch)
    step()
    assert graphs.num_replays == 2
    assert all(watch.seconds[part] > 0 for part in ("attention", "products", "head"))


def test_on_a_gpu_the_kernels_are_timed_and_not_their_launches(monkeypatch: pytest.MonkeyPatch) -> None:
    waited_for: list[torch.device] = []
    monkeypatch.setattr(torch.cuda, "synchronize", waited_for.append)
    clock_of(torch.device("cuda"))()
    clock_of(torch.device("cpu"))()
    assert waited_for == [torch.device("cuda")]
