"""Recorded runs: each opens, says that it is recorded, and shows what its engine did."""

from __future__ import annotations

import json

import pytest

from engine.events import BlockCopied, RequestPreempted, SequenceForked
from engine.recorder import FOLDER, RUNS
from engine.trace import Trace
from engine.usage import usage_of
from tests.app.conftest import OpenPage, until_loaded
from tests.helpers.app_html import figure, sentences
from views.course import OPEN_TRACE
from views.recordings import recordings


def trace_of(name: str) -> Trace:
    return Trace.from_json((FOLDER / f"{name}.json").read_text("utf-8"))


def test_every_run_of_the_recorder_is_there_and_labelled() -> None:
    assert recordings() == {name: run.title for name, run in RUNS.items()}
    for name in RUNS:
        info = trace_of(name).info
        assert (info["source"], info["model"]) == ("recording", "smollm2-135m-instruct")
        assert info["recorded"].count("-") == 2


def test_each_shows_what_it_is_there_for() -> None:
    assert any(isinstance(event, BlockCopied) for event in trace_of("three_samples"))
    assert any(isinstance(event, SequenceForked) for event in trace_of("beams"))
    assert any(isinstance(event, RequestPreempted) for event in trace_of("short_of_blocks"))
    assert "Paris" in "".join(trace_of("one_reply").at(trace_of("one_reply").num_steps).sequences["A"].pieces)


@pytest.mark.parametrize("name", RUNS)
def test_a_link_opens_one(open_page: OpenPage, name: str) -> None:
    app = until_loaded(open_page(OPEN_TRACE.file, recorded=name))
    trace = trace_of(name)
    assert any(f"Recorded on {trace.info['recorded']} from smollm2-135m-instruct" in said for said in sentences(app))
    payload = json.loads(app.get("bidi_component")[0].proto.json)["payload"]
    assert payload["is_open"]
    usage = usage_of(trace.at(trace.num_steps))
    assert figure(app, "used") == str(usage.num_used_blocks)


def test_one_is_chosen_and_put_away_again(open_page: OpenPage) -> None:
    app = open_page(OPEN_TRACE.file)
    app.pills(key="recorded_run").set_value("beams").run()
    assert any("Nothing runs here now." in said for said in sentences(until_loaded(app)))
    app.button(key="another_file").click().run()
    assert not app.exception
    assert not sentences(app)
