"""The command line over a trace file: exact lines, exact rows, a sentence where it cannot."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from course.scripted_engine import scripted_engine
from engine import EngineConfig, SamplingParams
from engine.trace.__main__ import main

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Five prompt words, three of a reply: blocks of 4, handed out 6, 1."""
    engine = scripted_engine(
        EngineConfig(block_size=4, num_blocks=8, free_order=(6, 1), enable_prefix_caching=False),
        {"A": ["=1+1", "jumped\x1b[31m", "high"]},
    )
    engine.generate(["The red fox just there"], SamplingParams(max_tokens=3))
    path = tmp_path / "trace.json"
    path.write_text(engine.trace.to_json(), "utf-8")
    return path


def test_print_writes_one_line_an_event(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["print", str(file)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "     0  PoolCreated           The pool has 8 blocks of 4: 32 slots."
    assert lines[1] == "     0  RequestAdded          Request A arrives with 5 prompt tokens."
    assert not any("\x1b" in line for line in lines)
    assert lines[-1].startswith("     3  StepCompleted")


def test_tables_after_a_step(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["table", str(file), "--step", "2"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "seq_id,logical_index,block_id,first_position,num_written,num_empty,ref_cnt,tokens",
        "A,0,6,0,4,0,1,Theredfoxjust",
        "A,1,1,4,2,2,1,there=1+1",
    ]


def test_blocks_after_a_step(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["blocks", str(file), "--step", "1"]) == 0
    rows = capsys.readouterr().out.splitlines()
    assert rows[0] == "block_id,status,ref_cnt,held_by,block_hash,tokens" and len(rows) == 9
    assert rows[1:3] == ["0,free,0,,,", "1,used,1,A:1,,there"] and rows[7] == "6,used,1,A:0,,Theredfoxjust"


def test_cells_are_no_spreadsheet_formulas(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    engine = scripted_engine(EngineConfig(block_size=4, num_blocks=8), {})
    engine.add_request("=SUM(A1) x")
    engine.step()
    path = tmp_path / "formula.json"
    path.write_text(engine.trace.to_json(), "utf-8")
    assert main(["table", str(path)]) == 0
    assert capsys.readouterr().out.splitlines()[1] == "A,0,0,0,2,2,1,'=SUM(A1)x"


def test_check(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", str(file)]) == 0
    out = capsys.readouterr().out
    assert "in 3 steps" in out and "Memory: 8 x 4; requests: 1; sequences: 1." in out and "scripted tokens" in out


@pytest.mark.parametrize(
    ("damage", "sentence"),
    [
        (lambda text: text[:-5], "not JSON"),
        (lambda text: text.replace('"block_id": 6', '"block_id": 99'), "contradicts itself"),
        (lambda text: text.replace('"type": "BlockAllocated"', '"type": "Bogus"'), "unknown event type 'Bogus'"),
    ],
)
def test_a_damaged_file_is_named_with_its_fault(
    file: Path, capsys: pytest.CaptureFixture[str], damage, sentence
) -> None:
    file.write_text(damage(file.read_text("utf-8")), "utf-8")
    assert main(["check", str(file)]) == 1
    assert sentence in capsys.readouterr().err


def test_check_names_the_fields_that_were_left_out(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", str(file)]) == 0
    assert "left out" not in capsys.readouterr().out
    document = json.loads(file.read_text("utf-8")) | {"x" * 100: 1}
    document["events"][0]["colour\x1b"] = "red"
    file.write_text(json.dumps(document), "utf-8")
    assert main(["check", str(file)]) == 0
    assert capsys.readouterr().out.splitlines()[3:] == [
        f"Fields that are not known here were left out: {'x' * 80}..., PoolCreated.colour\\x1b."
    ]


def test_a_missing_file_and_a_missing_step(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", str(file) + "x"]) == 1
    assert main(["table", str(file), "--step", "4"]) == 1
    assert "Step 4 is outside this trace, which has steps 0 to 3." in capsys.readouterr().err


def test_as_a_command_reading_standard_input(file: Path) -> None:
    command = [sys.executable, "-m", "engine.trace", "check", "-"]
    done = subprocess.run(command, cwd=ROOT, input=file.read_text("utf-8"), capture_output=True, text=True, check=False)
    assert done.returncode == 0 and done.stdout.startswith("Valid trace: ") and done.stderr == ""
