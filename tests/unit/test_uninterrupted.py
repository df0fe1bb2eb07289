"""What must be done whole is not cut off when the browser asks for another run; everything else still is."""

from __future__ import annotations

import pytest
from streamlit.runtime.scriptrunner.script_runner import ScriptRunner
from streamlit.runtime.state import SafeSessionState, SessionState

from views.streamlit_private import let_callbacks_finish, uninterrupted


class CutOffError(Exception):
    """In place of Streamlit's own."""


def interrupt(_runner: ScriptRunner) -> None:
    raise CutOffError


def act(state: SafeSessionState) -> None:
    state["first"] = 1
    state["second"] = 2


@pytest.fixture
def state(monkeypatch: pytest.MonkeyPatch) -> SafeSessionState:
    """A session whose browser waits for another run: each use of it stops the script that is under way."""
    monkeypatch.setattr(ScriptRunner, "_maybe_handle_execution_control_request", interrupt)
    monkeypatch.setattr(SessionState, "on_script_will_rerun", lambda _state, callback, **_: callback())
    monkeypatch.setattr(SafeSessionState, "on_script_will_rerun", SafeSessionState.on_script_will_rerun)
    let_callbacks_finish()
    runner = object.__new__(ScriptRunner)
    return SafeSessionState(SessionState(), runner._maybe_handle_execution_control_request)


def test_a_script_is_interrupted_at_its_first_use_of_the_session(state: SafeSessionState) -> None:
    with pytest.raises(CutOffError):
        act(state)
    with uninterrupted():
        assert "first" not in state


def test_a_callback_is_done_whole(state: SafeSessionState) -> None:
    state.on_script_will_rerun(lambda: act(state))  # type: ignore[arg-type]
    with uninterrupted():
        assert (state["first"], state["second"]) == (1, 2)


def test_what_is_uninterrupted_within_another_leaves_that_whole(state: SafeSessionState) -> None:
    with uninterrupted():
        uninterrupted()(act)(state)
        assert (state["first"], state["second"]) == (1, 2)
    with pytest.raises(CutOffError):
        act(state)


def test_after_an_error_scripts_are_interrupted_again(state: SafeSessionState) -> None:
    with pytest.raises(ZeroDivisionError), uninterrupted():
        raise ZeroDivisionError
    with pytest.raises(CutOffError):
        act(state)
