"""A fragment's clock that ticks while the reader turns the page does not turn it back."""

from __future__ import annotations

import pytest
from streamlit.runtime.scriptrunner_utils.script_requests import RerunData, ScriptRequests

from views.streamlit_private import let_no_clock_turn_the_page_back

TURN = RerunData(page_script_hash="new page", query_string="requests=3")
TICK = RerunData(page_script_hash="page just left", fragment_id="clock", is_auto_rerun=True)


@pytest.fixture
def requests(monkeypatch: pytest.MonkeyPatch) -> ScriptRequests:
    monkeypatch.setattr(ScriptRequests, "_request_rerun_locked", ScriptRequests._request_rerun_locked)
    let_no_clock_turn_the_page_back()
    return ScriptRequests()


@pytest.mark.parametrize("order", [(TURN, TICK), (TICK, TURN)])
def test_the_new_page_is_run(requests: ScriptRequests, order: tuple[RerunData, RerunData]) -> None:
    assert all(requests.request_rerun(data) for data in order)
    asked = requests.on_scriptrunner_ready().rerun_data
    assert (asked.page_script_hash, asked.query_string) == ("new page", "requests=3")
    assert asked.fragment_id_queue == []


def test_a_clock_alone_runs_its_fragment(requests: ScriptRequests) -> None:
    assert requests.request_rerun(TICK)
    assert requests.on_scriptrunner_ready().rerun_data.fragment_id_queue == ["clock"]
