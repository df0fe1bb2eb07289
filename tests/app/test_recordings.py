"""Recorded runs: each opens, says that it is recorded, and shows what its engine did."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from benchmarks.gpu_day import recorded_run
from benchmarks.gpu_day.context import context_of
from course.pages import OPEN_TRACE
from course.recorded_runs import FOLDER, RUNS
from engine.trace.events import BlockCopied, RequestPreempted, SequenceForked
from engine.trace.trace import Trace
from engine.trace.usage import usage_of
from tests.app.conftest import OpenPage, until_loaded
from tests.helpers.app_html import figure, sentences
from views.trace import page
from views.trace.page import recordings


def trace_of(name: str) -> Trace:
    return Trace.from_json((FOLDER / f"{name}.json").read_text("utf-8"))


def test_every_run_of_the_recorder_is_there_and_labelled() -> None:
    assert recordings() == {name: run.title for name, run in RUNS.items()}
    for name in RUNS:
        info = trace_of(name).info
        assert (info["source"], info["model"]) == ("recording", "smollm2-135m-instruct")
        assert info["recorded"].count("-") == 2


def test_each_recording_shows_its_subject() -> None:
    assert any(isinstance(event, BlockCopied) for event in trace_of("three_samples"))
    assert any(isinstance(event, SequenceForked) for event in trace_of("beams"))
    assert any(isinstance(event, RequestPreempted) for event in trace_of("short_of_blocks"))
    assert "Paris" in "".join(trace_of("one_reply").at(trace_of("one_reply").num_steps).sequences["A"].pieces)


@pytest.mark.parametrize("name", RUNS)
def test_a_link_opens_one(open_page: OpenPage, name: str) -> None:
    app = until_loaded(open_page(OPEN_TRACE.file, recorded=name))
    trace = trace_of(name)
    assert any(f"Recorded on {trace.info['recorded']} with smollm2-135m-instruct" in said for said in sentences(app))
    payload = json.loads(app.get("bidi_component")[0].proto.json)["payload"]
    assert payload["is_open"]
    usage = usage_of(trace.at(trace.num_steps))
    assert figure(app, "used") == str(usage.num_used_blocks)


def test_a_recording_is_chosen_and_closed(open_page: OpenPage) -> None:
    app = open_page(OPEN_TRACE.file)
    app.pills(key="recorded_run").set_value("beams").run()
    assert any("No model is running here." in said for said in sentences(until_loaded(app)))
    app.button(key="another_file").click().run()
    assert not app.exception
    assert not sentences(app)


def test_a_run_recorded_elsewhere_is_listed_once_its_file_is_there(
    open_page: OpenPage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As benchmarks/gpu_day writes it: here on this processor, by its name."""
    shutil.copy(FOLDER / "one_reply.json", tmp_path)
    (tmp_path / "own.json").write_text(Trace(info={"source": "engine"}).to_json(), "utf-8")
    context = context_of(tmp_path, "tiny")
    list(recorded_run.run(context))
    name = recorded_run.name_of_file(context.device_name)
    monkeypatch.setattr(page, "FOLDER", tmp_path)
    recordings.cache_clear()
    try:
        assert list(recordings().items()) == [
            ("one_reply", RUNS["one_reply"].title),
            (name, f"Three samples share a prompt, then copy, on {context.device_name}"),
        ]
        app = open_page(OPEN_TRACE.file)
        app.pills(key="recorded_run").set_value(name).run()
        info = Trace.from_json((tmp_path / f"{name}.json").read_text("utf-8")).info
        recorded = f"Recorded on {context.device_name}, {info['recorded']}, with tiny-random in float32."
        assert any(recorded in said for said in sentences(until_loaded(app)))
    finally:
        recordings.cache_clear()
