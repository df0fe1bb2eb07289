"""The throughput benchmark counts what it says it counts, and gives everybody the same work."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.contestants import (
    Job,
    Limits,
    OurEngine,
    TransformersGenerate,
    embedded,
    embedded_in_transformers,
)
from benchmarks.targets import markdown, verdicts
from benchmarks.throughput import Cell, decode_speed, measure, pair_of, peer_of, random_job, rows_of

PEER_LOOP = Path(__file__).resolve().parents[2] / "benchmarks" / "peers"


class Scripted:
    """A contestant with known times."""

    description = "scripted"

    def __init__(self, *runs: list[float]) -> None:
        self.runs = list(runs)
        self.jobs: list[Job] = []

    def run(self, job: Job) -> list[float]:
        self.jobs.append(job)
        return self.runs.pop(0)


def test_a_row_is_the_median_of_the_rounds_without_the_first() -> None:
    cell = Cell(batch=2, prompt=3, new_tokens=3)
    slow, fast = [1.0, 2.0, 9.0], [0.5, 1.0, 1.5]
    ours = Scripted([100.0, 200.0, 300.0], fast, fast, slow)
    other = Scripted(*[[1.0, 2.0, 3.0]] * 4)
    [row, beside] = rows_of(cell, measure(cell, {"ours": ours, "other": other}, rounds=3, cell_seconds=60))
    assert row == {
        "batch": 2, "prompt": 3, "contestant": "ours", "rounds": 3,
        "tokens/s": 4.0, "first ms": 500.0, "decode tokens/s": 4.0, "beside ours": 1.0,
    }  # fmt: skip
    assert (beside["tokens/s"], beside["decode tokens/s"], beside["beside ours"]) == (2.0, 2.0, 0.5)
    assert ours.jobs == other.jobs and len({str(job) for job in ours.jobs}) == 4


def test_decode_speed_starts_when_every_sequence_has_a_token() -> None:
    assert decode_speed(Cell(4, 16, 3), [10.0, 10.5, 11.0]) == 8.0


def test_a_slow_round_is_the_only_one_and_counts() -> None:
    times = [1.0, 2.0]
    measured = measure(Cell(1, 2, 2), {"ours": Scripted(times)}, rounds=5, cell_seconds=0.0)
    assert measured == {"ours": [times]}


@pytest.mark.embedded
def test_this_engine_and_transformers_run_the_same_job_with_token_timestamps() -> None:
    job = random_job(Cell(2, 5, 4), 1)
    ours = OurEngine(embedded("float32", "cpu"), "cpu", Limits(2, 9))
    for contestant in (ours, TransformersGenerate(embedded_in_transformers("float32", "cpu"))):
        times = contestant.run(job)
        assert len(times) == 4 and times == sorted(times) and times[0] > 0


def test_a_peer_writes_json_lines_whatever_its_engine_prints() -> None:
    program = "from peer_loop import serve\nprint('noise')\nserve('toy 1', lambda p, n: print('more') or [len(p), n])"
    job = json.dumps({"prompts": [[1], [2]], "num_tokens": 7})
    done = subprocess.run([sys.executable, "-c", program], input=job, cwd=PEER_LOOP, capture_output=True, text=True)
    assert done.stdout.splitlines() == ['{"engine": "toy 1"}', '{"times": [2, 7]}']
    assert "noise" in done.stderr and "more" in done.stderr


def test_a_cell_is_batch_x_prompt() -> None:
    assert pair_of("16x900") == (16, 900)


def test_a_peer_is_named_with_its_interpreter() -> None:
    assert peer_of("vllm=/opt/v/bin/python") == ("vllm", "/opt/v/bin/python")
    with pytest.raises(Exception, match="not vllm=PYTHON or llamacpp=PYTHON"):
        peer_of("sglang=/opt/python")


def test_a_run_is_compared_with_the_targets() -> None:
    speeds = {"cpu-int4": 250.0, "vllm": 100.0, "transformers-bfloat16": 50.0, "cpu-bfloat16": 90.0}
    measured = [
        {"batch": 1, "prompt": 16, "contestant": name, "decode tokens/s": speed} for name, speed in speeds.items()
    ]
    rows = list(verdicts(measured))
    assert [(row["ratio"], row["measured"], row["verdict"]) for row in rows[:3]] == [
        ("cpu-int4 : vllm", "2.50", "missed by 17 %"),
        ("cpu-int4 : transformers-bfloat16", "5.00", "met"),
        ("cpu-int4 : llamacpp", "-", "not in this run"),
    ]
    assert next(row["verdict"] for row in rows if row["ratio"] == "cpu-bfloat16 : vllm") == "missed by 10 %"


def test_the_markdown_page_carries_command_machine_and_both_tables() -> None:
    run = {
        "command": "python -m benchmarks.throughput",
        "machine": {"GPU": "none"},
        "notes": ["cpu-int4: this engine"],
        "rows": [{"batch": 1, "prompt": 16, "contestant": "cpu-int4", "decode tokens/s": 9.0}],
    }
    lines = list(markdown(run, list(verdicts(run["rows"]))))  # type: ignore[arg-type]
    assert lines[:3] == ["`python -m benchmarks.throughput`\n", "- GPU: none", "- cpu-int4: this engine"]
    assert "| 1 | 16 | cpu-int4 | 9.0 |" in lines
    assert "| 1 | 16 | cpu-int4 : vllm | 3 | - | not in this run |" in lines
