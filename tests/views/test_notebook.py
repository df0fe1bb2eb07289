"""`show(trace)` and the document it makes: whole, harmless, and made without Streamlit."""

from __future__ import annotations

import base64
import html
import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from course.scripted_engine import scripted_engine
from engine import EngineConfig, SamplingParams, Trace
from tests.helpers.map_traces import busy
from views.live.export import COMMANDS, IN_A_NOTEBOOK
from views.memory_map import notebook
from views.memory_map.frames import frames_payload
from views.memory_map.notebook import main, map_document, show

ROOT = Path(__file__).resolve().parents[2]


def payload_in(document: str) -> dict[str, object]:
    [text] = re.findall(r'<script type="application/json" id="maps">(.*?)</script>', document, re.DOTALL)
    [data] = json.loads(text)
    payload: dict[str, object] = data["payload"]
    return payload


def test_the_document_holds_the_frames_and_makes_no_request() -> None:
    document = map_document(busy(), "A run")
    assert payload_in(document) == json.loads(json.dumps(frames_payload(busy(), title="A run")))
    assert "default-src 'none'" in document
    assert not re.search(r"(src|href)=\"?https?:", document)


def test_text_of_a_trace_cannot_break_out_of_the_document() -> None:
    engine = scripted_engine(EngineConfig(block_size=4, num_blocks=9), {"A": ["</script><script>alert(1)</script>"]})
    engine.add_request("<img src=x onerror=alert(2)>", SamplingParams(max_tokens=1))
    engine.step()
    document = map_document(engine.trace, "</title><script>")
    assert document.count("<script") == 2
    assert "<img" not in document
    assert "</title><script>" not in document
    shown = show(engine.trace)._repr_html_()
    assert re.findall(r"<(\w+)", shown) == ["iframe", "style", "div", "p", "img"], "all else is escaped"
    [image] = re.findall(r"base64,([^\"]+)", shown)
    tags = [node.tag.split("}")[1] for node in ElementTree.fromstring(base64.b64decode(image)).iter()]
    assert set(tags) == {"svg", "rect", "g", "text"}


def test_a_notebook_gets_a_frame_that_holds_the_document() -> None:
    shown = show(busy(), height=333)
    [page] = re.findall(r'srcdoc="(.*?)"', shown._repr_html_(), re.DOTALL)
    assert html.unescape(page) == shown.document
    assert "height: 333px" in shown._repr_html_()


def test_printed_a_shown_trace_is_one_line() -> None:
    line = repr(show(busy()))
    assert re.fullmatch(r"A trace of \d+ steps and \d+ events: \d+ of \d+ blocks used, \d+ tokens written\.", line)
    assert repr(show(Trace())) == "A trace of 0 steps and 0 events."


def test_the_command_line_writes_the_same_document_without_streamlit(tmp_path: Path) -> None:
    file = tmp_path / "trace.json"
    file.write_text(busy().to_json(), "utf-8")
    program = (
        "import sys\n"
        "for name in ('streamlit', 'plotly', 'pandas', 'torch'): sys.modules[name] = None\n"
        "import runpy; sys.argv = ['notebook', sys.argv[1]]\n"
        "runpy.run_module('views.memory_map.notebook', run_name='__main__')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(file)],
        cwd=ROOT,
        env={**os.environ, "PYTHONIOENCODING": "ascii"},  # the document says UTF-8, whatever the terminal takes
        capture_output=True,
        check=True,
    )
    assert done.stdout.decode() == map_document(Trace.from_json(busy().to_json()), "trace.json")


@pytest.mark.parametrize(("text", "sentence"), [("nonsense", "it is not JSON"), (None, "No such file")])
def test_what_cannot_be_shown_is_reported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str | None, sentence: str
) -> None:
    file = tmp_path / "x.json"
    if text is not None:
        file.write_text(text)
    assert main([str(file)]) == 1
    assert sentence in capsys.readouterr().err
    assert main([]) == 2


@pytest.mark.parametrize("text", [IN_A_NOTEBOOK, notebook.__doc__ or ""])
def test_the_documented_imports_work(text: str) -> None:
    lines = [line.strip() for line in text.splitlines() if re.match(r"\s*from \S+ import ", line)]
    assert lines
    for line in lines:
        exec(line, {})


def test_the_documented_commands_exist() -> None:
    modules = re.findall(r"python -m (\S+)", COMMANDS)
    assert set(modules) == {"engine.trace", "views.memory_map.notebook"}
    assert all(importlib.util.find_spec(module) for module in modules)
