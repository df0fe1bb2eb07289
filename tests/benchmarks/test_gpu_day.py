"""The GPU day on a CPU: every part runs or says why not, one that fails, hangs or dies stops no other, time is kept."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from benchmarks.gpu_day import gpu_tests, graphs, tiles, weights
from benchmarks.gpu_day.budget import run_parts
from benchmarks.gpu_day.context import SIZES, Context, context_of
from benchmarks.gpu_day.findings import Finding, Measured, Outcome, Remark, Target
from benchmarks.gpu_day.parts import PARTS, Part
from benchmarks.gpu_day.recorded_run import name_of_file
from benchmarks.gpu_day.report import REPORT, RESULTS, Report
from benchmarks.gpu_day.versions import pins
from benchmarks.gpu_day.worker import ProcessWorker, Settings, messages_of, released
from benchmarks.tables import processor_name
from engine import EngineConfig
from engine.model.weights.cache import cached_folder, is_intact
from engine.model.weights.embedded import CACHE_NAME
from engine.trace.trace import Trace
from kernels.paged_attention.triton_config import DECODE, INTERPRETER, Tiles, tiles_for
from tests.helpers.emulated_graphs import EmulatedGraphs, emulated_engine

ROOT = Path(__file__).resolve().parents[2]
NOT_ON_A_CPU = {"gpu_tests", "graphs"}
QUICK = {"versions", "gpu_tests", "graphs", "recorded_run", "memory", "two_threads", "vllm_throughput"}
NOT_INSTALLED = {"vllm_throughput"}
WEIGHTS_READ = 4 * (2 * (64 * (64 + 2 * 32 + 64) + 3 * 64 * 128 + 2 * 64) + 64 * 258 + 258)
"""Bytes of the tiny model's layers, each with products and norms, and of its head; float32."""
BLOCKED = (
    "streamlit", "transformers", "numba", "msgspec", "plotly", "pandas", "tokenizers", "safetensors", "gguf", "jinja2",
    "filelock", "platformdirs", "packaging", "hypothesis", "xdist", "starlette", "uvicorn", "zmq", "segno",
)  # fmt: skip


class SameProcess:
    """Runs parts here, as the second process would."""

    def __init__(self, context: Context) -> None:
        self.context = context

    def run(self, part: Part, _seconds: float, on_finding: Callable[[Finding], None]) -> Outcome:
        for message in messages_of(part.module, self.context):
            if isinstance(message, Outcome):
                return message
            on_finding(message)
        raise AssertionError("a part ended without an outcome")


def records_in(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / RESULTS).read_text("utf-8").splitlines()]


def status_of(records: list[dict[str, Any]]) -> dict[str, str]:
    return {record["part"]: record["status"] for record in records if record["kind"] == "end"}


def run_after_a_failure(parts: Sequence[Part], folder: Path) -> list[dict[str, Any]]:
    """What is on the disk after a part that fails and then `parts`, all in this process."""
    failing = Part("failing_part", needs=0, package="tests.helpers")
    report = Report(folder)
    run_parts((failing, *parts), SameProcess(context_of(folder, "tiny")), report, seconds=1e6)
    report.close()
    records = records_in(folder)
    expected = {part.name: "not here" if part.name in NOT_ON_A_CPU | NOT_INSTALLED else "done" for part in parts}
    assert status_of(records) == {"failing_part": "failed"} | expected
    for part in parts:
        of_part = [record for record in records if record["part"] == part.name]
        assert any(record["kind"] == "measured" for record in of_part) or of_part[-1]["detail"]
    return records


def test_a_failing_part_is_recorded_and_the_rest_run(tmp_path: Path) -> None:
    records = run_after_a_failure([part for part in PARTS if part.name in QUICK], tmp_path)
    [failed] = [record for record in records if record.get("status") == "failed"]
    assert failed["detail"] == "ZeroDivisionError: division by zero (failing_part.py, line 13)"
    [row] = [record for record in records if "file" in record]
    info = Trace.from_json((tmp_path / row["file"]).read_text("utf-8")).info
    assert (info["source"], info["device_name"]) == ("recording", processor_name())
    [row] = [record for record in records if "texts as alone" in record]
    assert row["texts as alone"] == "4 of 4"
    freed = "keys and values freed"
    assert [record[freed] for record in records if freed in record] == [True] * 3
    assert "failing_part: failed after" in (tmp_path / REPORT).read_text("utf-8")


@pytest.mark.slow
def test_every_part_runs_on_a_cpu_or_gives_a_reason(tmp_path: Path) -> None:
    records = run_after_a_failure(PARTS, tmp_path)
    targets = [record for record in records if record["kind"] == "target"]
    assert {record["verdict"] for record in targets} == {"not judged on a CPU"}
    assert {record["part"] for record in targets} == {"decode_attention", "throughput"}
    assert "not judged on a CPU: decode_attention" in (tmp_path / REPORT).read_text("utf-8")


def test_the_remaining_time_decides_what_starts_and_its_timeout(tmp_path: Path) -> None:
    now, started = [0.0], []

    class Slow:
        def run(self, part: Part, seconds: float, on_finding: Callable[[Finding], None]) -> Outcome:
            started.append((part.name, seconds))
            on_finding(Remark("so far"))
            now[0] += 30
            return Outcome("done", "", 30.0)

    parts = (Part("a", needs=5, share=0.4), Part("b", needs=5, share=1.0), Part("c", needs=50), Part("d", needs=5))
    report = Report(tmp_path)
    run_parts(parts, Slow(), report, seconds=100, clock=lambda: now[0])
    assert started == [("a", 40.0), ("b", 70.0), ("d", 20.0)]
    assert report.outcomes["c"] == Outcome("not started", "40 s were left, and it needs 50", 0.0)
    on_disk = records_in(tmp_path)  # before the report is closed
    assert [record["kind"] for record in on_disk] == ["remark", "end", "remark", "end", "end", "remark", "end"]
    report.close()


@pytest.mark.slow
def test_a_part_that_hangs_or_crashes_is_recorded_and_the_next_one_runs(tmp_path: Path) -> None:
    worker = ProcessWorker(Settings(tmp_path, "tiny", context_module="tests.helpers.hanging_part"))
    found: list[Finding] = []
    parts = {name: Part(f"{name}_part", needs=0, package="tests.helpers") for name in ("hanging", "dying", "ready")}
    worker.run(parts["ready"], 60.0, lambda _finding: None)  # its process has started: what hangs has its 3 s
    hung = worker.run(parts["hanging"], 3.0, found.append)
    died = worker.run(parts["dying"], 60.0, found.append)
    ready = [worker.run(parts["ready"], 60.0, found.append) for _ in range(2)]
    worker.close()
    assert (hung.status, hung.detail) == ("stopped", "it was not done after 3 s")
    assert (died.status, died.detail) == ("failed", "its process ended with exit code 3")
    assert [outcome.status for outcome in ready] == ["done", "done"]
    said = [finding.text for finding in found if isinstance(finding, Remark)]
    assert said[:2] == ["about to hang", "about to die"]
    assert said[2] == said[3]  # one process for both


@pytest.mark.slow
def test_the_command_needs_torch_triton_numpy_and_pytest_alone(tmp_path: Path) -> None:
    blocker = tmp_path / "blocker"
    blocker.mkdir()
    (blocker / "sitecustomize.py").write_text(f"import sys\nsys.modules.update(dict.fromkeys({BLOCKED}))\n")
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.gpu_day", "--sizes", "tiny", "--seconds", "500", "--out", str(tmp_path)],
        cwd=ROOT, env=os.environ | {"PYTHONPATH": f"{blocker}{os.pathsep}{ROOT}", "TRITON_INTERPRET": "1"},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    records = records_in(tmp_path)
    not_here = NOT_ON_A_CPU | NOT_INSTALLED | {"throughput"}
    assert status_of(records) == {part.name: "not here" if part.name in not_here else "done" for part in PARTS}
    assert done.returncode == 0, done.stderr
    installed = {record["package"]: record["installed"] for record in records if "package" in record}
    assert installed["torch"] == torch.__version__ and installed["numba"] == "not installed"
    assert "safetensors and tokenizers is not installed" in done.stdout


@pytest.mark.slow
def test_test_results_are_kept_after_a_timeout(tmp_path: Path) -> None:
    file = tmp_path / "test_some.py"
    file.write_text(
        "import pytest, time\n"
        "def test_right(): pass\n"
        "def test_wrong(): assert 1 == 2\n"
        "@pytest.mark.skip(reason='no card')\n"
        "def test_left_out(): pass\n"
        "def test_endless(): time.sleep(600)\n"
    )
    (tmp_path / "test_torn.py").write_text("import a_package_that_is_not_there\n")
    found: list[Finding] = []
    with pytest.raises(AssertionError, match="2 tests or files failed, 1 passed, pytest returned None"):
        found += gpu_tests.results_of([tmp_path], ["-p", "no:cacheprovider"], 15.0)
    with pytest.raises(AssertionError):
        for finding in gpu_tests.results_of([tmp_path], ["-p", "no:cacheprovider", "-k", "not endless"], 60.0, 1):
            found.append(finding)
    rows = [finding.row for finding in found if isinstance(finding, Measured)]
    assert rows[0] == {"passed": 1, "failed": 1, "skipped": 1, "not collected": 1}
    assert {"assert 1 == 2", "ModuleNotFoundError: No module named 'a_package_that_is_not_there'"} <= {
        row.get("error") for row in rows
    }
    assert Remark("1 skipped: Skipped: no card") in found


def test_a_device_that_is_lost_ends_the_process_of_its_part() -> None:
    class Lost:
        def release(self) -> None:
            raise RuntimeError("CUDA error: an illegal memory access was encountered")

    done = Outcome("done", "", 1.0)
    assert released(done, Lost()).has_lost_device  # type: ignore[arg-type]
    assert not done.has_lost_device


def test_gpu_tests_are_found_by_their_mark() -> None:
    files = gpu_tests.files_with_gpu_tests(ROOT / "tests")
    assert ROOT / "tests" / "model" / "test_cuda_graphs.py" in files
    assert ROOT / "tests" / "kernels" in files and Path(__file__) not in files


def test_a_target_is_evaluated_on_a_gpu() -> None:
    share = Target("share", 0.9, 0.85, at_least=True, on_card=True)
    assert share.verdict == "pass" and replace(share, measured=0.84).verdict == "fail"
    over = Target("over", 1.04, 1.05, at_least=False, on_card=True)
    assert over.verdict == "pass" and replace(over, measured=1.06).verdict == "fail"
    assert replace(over, on_card=False).verdict == "not judged on a CPU"


def test_pins_are_read_from_the_requirements() -> None:
    found = pins((ROOT / "requirements.txt").read_text("utf-8"))
    assert found["torch"] == "==2.13.0" and found["triton"] == "==3.7.1" and found["numpy"] == ">=2.1,<2.5"


def test_replayed_steps_are_compared_with_eager_ones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With graphs emulated: the rows of a card, and a replay that gives other tokens is a failure."""
    context = Context(torch.device("cpu"), SIZES["tiny"], tmp_path)
    config = EngineConfig(model="tiny-random", num_blocks=32, attention_backend="reference")

    def decoding(
        _loaded: object, _backend: str, case: Any, _block: int, tokens: int, *, enforce_eager: bool = False
    ) -> Any:
        from engine import SamplingParams

        engine, _ = emulated_engine(config, graphs=EmulatedGraphs, record_after=999 if enforce_eager else 1)
        for i in range(case.batch):
            engine.add_request([i + 1, 2, 3], SamplingParams(max_tokens=tokens, ignore_eos=True))
        engine.step()
        return engine

    monkeypatch.setattr(graphs, "decoding_engine", decoding)
    monkeypatch.setattr(graphs, "BATCHES", (1, 3))
    loaded = context.speed_model("float32")
    rows = [finding.row for finding in graphs.compare(context, loaded) if isinstance(finding, Measured)]
    assert [row["equal texts"] for row in rows] == ["1 of 1", "3 of 3"]
    monkeypatch.setattr(graphs, "nodes_of_a_step", lambda _engine: 0)
    [nothing_counted] = graphs.beside_floor(context, loaded)
    assert isinstance(nothing_counted, Remark) and "no floor" in nothing_counted.text
    monkeypatch.setattr(graphs, "nodes_of_a_step", lambda _engine: 300)
    monkeypatch.setattr(graphs, "seconds_a_node", lambda _device: 2e-6)
    monkeypatch.setattr(graphs, "seconds_of_steps", lambda _engine, _steps: [9.0, 0.9e-3, 0.1e-3])
    monkeypatch.setattr(graphs, "copy_bandwidth", lambda _device: 1e12)
    measured, target = graphs.beside_floor(context, loaded)
    assert isinstance(measured, Measured) and measured.row["weights MB"] == WEIGHTS_READ / 1e6
    assert isinstance(target, Target) and target.measured == pytest.approx(0.9e-3 / 300 / 2e-6)
    assert target.verdict == "fail"
    tokens = iter([[(1, 2)], [(1, 3)]])
    monkeypatch.setattr(graphs, "tokens_after_a_step", lambda _engine: next(tokens))
    with pytest.raises(AssertionError, match="other tokens in 1 of 1 texts"):
        list(graphs.compare(context, loaded))


def test_a_tile_candidate_is_used_and_the_table_restored() -> None:
    before = tiles_for(DECODE, INTERPRETER, 4, 64, 1)
    other = Tiles(16, 32, 1, 1)
    with tiles.entry_replaced(DECODE[INTERPRETER], (4, 64), other):
        assert tiles_for(DECODE, INTERPRETER, 4, 64, 1) == other
    assert tiles_for(DECODE, INTERPRETER, 4, 64, 1) == before
    today = Tiles(16, 64, 4, 3)
    candidates = tiles.neighbours(today, tiny=False)
    assert candidates[0] == today and len(set(candidates)) == len(candidates) == 48


def test_weights_are_transferred_in_two_parts_with_a_checksum(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PAGED_KV_CACHE_DIR", str(tmp_path / "here"))

    def fill(folder: Path) -> None:
        (folder / "weights").write_bytes(os.urandom(90_000))

    cached = cached_folder(CACHE_NAME, fill)
    carried = tmp_path / "carried"
    index, *parts = weights.split(cached, carried, 60_000)
    assert [part.name for part in parts] == ["weights.part1", "weights.part2"]
    monkeypatch.delenv("PAGED_KV_CACHE_DIR")
    second = parts[1].read_bytes()
    parts[1].unlink()
    with pytest.raises(weights.WeightsError, match=r"weights\.part2 is not in .*all of weights\.part1, weights\.part2"):
        weights.join(carried)
    parts[1].write_bytes(second[:-1] + b"!")
    with pytest.raises(weights.WeightsError, match=r"weights\.part2 is damaged"):
        weights.join(carried)
    parts[1].write_bytes(second)
    weights.join(carried)
    joined = Path(os.environ["PAGED_KV_CACHE_DIR"]) / CACHE_NAME
    assert is_intact(joined) and (joined / "weights").read_bytes() == (cached / "weights").read_bytes()
    index.unlink()
    assert weights.join(carried)  # whole already


def test_a_recording_is_named_after_its_gpu() -> None:
    assert name_of_file("NVIDIA H200 (a)") == "recorded-on-nvidia-h200-a"
