"""`show(trace)` and the document it makes: whole, harmless, and made without Streamlit."""

from __future__ import annotations

import html
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from engine import EngineConfig, SamplingParams, Trace
from engine.scripted import scripted_engine
from tests.helpers.map_traces import busy
from views.frames import frames_payload
from views.notebook import main, map_document, show

ROOT = Path(__file__).resolve().parents[2]


def payload_in(document: str) -> dict[str, object]:
    [text] = re.findall(r'<script type="application/json" id="payload">(.*?)</script>', document, re.DOTALL)
    payload: dict[str, object] = json.loads(text)
    return payload


def test_the_document_holds_the_frames_and_asks_nobody_for_anything() -> None:
    document = map_document(busy(), "A run")
    assert payload_in(document) == json.loads(json.dumps(frames_payload(busy(), title="A run")))
    assert "default-src 'none'" in document
    assert not re.search(r"(src|href)=\"?https?:", document)


def test_words_of_the_trace_cannot_leave_their_place() -> None:
    engine = scripted_engine(EngineConfig(block_size=4, num_blocks=9), {"A": ["</script><script>alert(1)</script>"]})
    engine.add_request("<img src=x onerror=alert(2)>", SamplingParams(max_tokens=1))
    engine.step()
    document = map_document(engine.trace, "</title><script>")
    assert document.count("<script") == 2
    assert "<img" not in document
    assert "</title><script>" not in document
    assert show(engine.trace)._repr_html_().count("<") == 2, "the frame and its end, all else is escaped"


def test_a_notebook_gets_a_frame_that_holds_the_document() -> None:
    shown = show(busy(), height=333)
    [page] = re.findall(r'srcdoc="(.*?)"', shown._repr_html_(), re.DOTALL)
    assert html.unescape(page) == shown.document
    assert "height: 333px" in shown._repr_html_()


def test_the_command_line_writes_the_same_document_without_streamlit(tmp_path: Path) -> None:
    file = tmp_path / "trace.json"
    file.write_text(busy().to_json(), "utf-8")
    program = (
        "import sys\n"
        "for name in ('streamlit', 'plotly', 'pandas', 'torch'): sys.modules[name] = None\n"
        "import runpy; sys.argv = ['notebook', sys.argv[1]]; runpy.run_module('views.notebook', run_name='__main__')\n"
    )
    done = subprocess.run([sys.executable, "-c", program, str(file)], cwd=ROOT, capture_output=True, check=True)
    assert done.stdout.decode() == map_document(Trace.from_json(busy().to_json()), "trace.json")


@pytest.mark.parametrize(("text", "sentence"), [("nonsense", "it is not JSON"), (None, "No such file")])
def test_what_cannot_be_shown_is_said_in_a_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str | None, sentence: str
) -> None:
    file = tmp_path / "x.json"
    if text is not None:
        file.write_text(text)
    assert main([str(file)]) == 1
    assert sentence in capsys.readouterr().err
    assert main([]) == 2
