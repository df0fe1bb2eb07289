"""The patches of Streamlit: each is still needed, does what it says, and is left out where Streamlit has changed."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import hashlib
import logging
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from unittest.mock import MagicMock

import pytest
import streamlit
from streamlit.proto.ClientState_pb2 import ClientState
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.proto.WidgetStates_pb2 import WidgetState, WidgetStates
from streamlit.runtime import Runtime
from streamlit.runtime.app_session import AppSession
from streamlit.runtime.forward_msg_queue import ForwardMsgQueue
from streamlit.runtime.pages_manager import PagesManager
from streamlit.runtime.script_data import ScriptData
from streamlit.runtime.scriptrunner.script_cache import ScriptCache
from streamlit.runtime.scriptrunner.script_runner import ScriptRunner
from streamlit.runtime.scriptrunner_utils.exceptions import RerunException
from streamlit.runtime.scriptrunner_utils.script_requests import (
    RerunData,
    ScriptRequests,
    ScriptRequestType,
)
from streamlit.runtime.state import SafeSessionState, SessionState

from tests.helpers.app_server import ROOT
from tests.helpers.asynchronous import run_to_end
from tests.helpers.waiting import until
from views.server.streamlit_internals import (
    PATCHES,
    STREAMLIT_VERSION,
    apply_patches,
    disable_pages_directory,
    finish_callbacks_before_rerun,
    ignore_clicks_in_fragment_reruns,
    ignore_fragment_rerun_during_full_rerun,
    inline_script_hashes,
    keep_undelivered_fragment_deltas,
    start_run_after_last_events_are_handled,
    uninterrupted,
    unmet_expectations,
)

PATCHED = (
    (PagesManager, "uses_pages_directory"),
    (ForwardMsgQueue, "clear"),
    (AppSession, "_create_scriptrunner"),
    (AppSession, "_handle_scriptrunner_event_on_event_loop"),
    (ScriptRunner, "_maybe_handle_execution_control_request"),
    (SafeSessionState, "on_script_will_rerun"),
    (ScriptRequests, "_request_rerun_locked"),
)


@pytest.fixture(autouse=True)
def unpatched_after_the_test(monkeypatch: pytest.MonkeyPatch) -> None:
    for owner, name in PATCHED:
        monkeypatch.setattr(owner, name, getattr(owner, name))


class TestTheCheckAtTheStart:
    @pytest.fixture
    def applied(self, monkeypatch: pytest.MonkeyPatch) -> list[str]:
        """Names of the patches that `apply_patches` applies, which here do nothing."""
        names: list[str] = []

        def note(name: str) -> Callable[[], None]:
            return lambda: names.append(name)

        for patch in PATCHES:
            monkeypatch.setitem(vars(patch), "apply", note(patch.apply.__name__))
        return names

    def test_every_patch_fits_the_pinned_streamlit(self, applied: list[str], caplog: pytest.LogCaptureFixture) -> None:
        assert f"streamlit=={STREAMLIT_VERSION}" in (ROOT / "requirements.txt").read_text("utf-8").split()
        assert [unmet_expectations(patch) for patch in PATCHES] == [[]] * 6
        with caplog.at_level(logging.WARNING):
            apply_patches()
        assert len(applied) == 6
        assert caplog.messages == []

    def test_all_patches_are_applied_although_two_change_one_method(self) -> None:
        """In a process of its own: patches are for good."""
        program = (
            "import logging; logging.basicConfig(level=logging.WARNING)\n"
            "from views.server.streamlit_internals import apply_patches; apply_patches()\n"
            "from streamlit.runtime.scriptrunner_utils.script_requests import ScriptRequests\n"
            "print(ScriptRequests._request_rerun_locked.__name__)\n"
        )
        done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
        assert (done.stdout, done.stderr) == ("request_without_clicks\n", "")

    def test_a_changed_signature_leaves_out_one_patch_and_is_one_warning(
        self, applied: list[str], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        monkeypatch.setattr(ForwardMsgQueue, "clear", lambda self, keep: None)
        apply_patches()
        assert "keep_undelivered_fragment_deltas" not in applied and len(applied) == 5
        assert caplog.messages == [
            "A patch for Streamlit 1.67.0 is left out, because "
            "streamlit.runtime.forward_msg_queue:ForwardMsgQueue.clear takes self, keep. "
            "A page may stay blank on a busy machine until it is reloaded."
        ]

    def test_a_missing_function_or_attribute_leaves_its_patch_out(
        self, applied: list[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.delattr(ScriptRequests, "_request_rerun_locked")
        monkeypatch.setattr(AppSession, "__init__", lambda self: None)
        apply_patches()
        assert applied == [
            "disable_pages_directory", "keep_undelivered_fragment_deltas", "finish_callbacks_before_rerun",
        ]  # fmt: skip

    def test_another_version_that_fits_is_patched_and_named(
        self, applied: list[str], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        monkeypatch.setattr(streamlit, "__version__", "1.99.0")
        apply_patches()
        assert len(applied) == 6
        [warning] = caplog.messages
        assert warning.startswith("Streamlit 1.99.0 is installed, but this app is written for 1.67.0")


class TestPagesDirectory:
    def test_streamlit_takes_the_folder_for_its_older_pages(self) -> None:
        PagesManager.uses_pages_directory = None
        PagesManager(str(ROOT / "app.py"))
        assert PagesManager.uses_pages_directory is True

    def test_patched_it_does_not(self) -> None:
        PagesManager.uses_pages_directory = None
        disable_pages_directory()
        PagesManager(str(ROOT / "app.py"))
        assert PagesManager.uses_pages_directory is False


class TestUndeliveredDeltas:
    """Three elements wait to be sent, the second one drawn by a fragment; then that fragment reruns."""

    @staticmethod
    def delta(index: int, fragment_id: str = "") -> ForwardMsg:
        message = ForwardMsg()
        message.metadata.delta_path.extend([0, index])
        message.delta.add_block.allow_empty = True
        message.delta.fragment_id = fragment_id
        return message

    def sent_after_rerun(self, fragments: list[str] | None) -> list[int]:
        queue = ForwardMsgQueue()
        for message in (self.delta(4), self.delta(5, "fragment"), self.delta(6)):
            queue.enqueue(message)
        queue.clear(retain_lifecycle_msgs=True, fragment_ids_this_run=fragments)
        return [message.metadata.delta_path[1] for message in queue.flush()]

    def test_streamlit_drops_the_fragments_delta(self) -> None:
        assert self.sent_after_rerun(["fragment"]) == [4, 6]

    def test_patched_it_is_kept(self) -> None:
        keep_undelivered_fragment_deltas()
        assert self.sent_after_rerun(["fragment"]) == [4, 5, 6]

    def test_a_rerun_of_the_whole_page_still_drops_all(self) -> None:
        keep_undelivered_fragment_deltas()
        assert self.sent_after_rerun(None) == []


class TestLastEventsOfARun:
    """A fragment's rerun is requested when the page's run has ended, and the event loop has handled none of it yet."""

    SCRIPT = """
import streamlit as st

st.html("page")
st.fragment(lambda: st.html("words"), key="words")()
"""

    @pytest.fixture(autouse=True)
    def runtime(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(Runtime, "_instance", MagicMock())

    def sent(self, folder: Path, num_requests: int) -> tuple[list[str], list[str]]:
        """Texts of elements and statuses of finished runs, in the order in which the browser receives them."""
        script = folder / "script.py"
        script.write_text(self.SCRIPT)
        messages = run_to_end(self.messages(script, num_requests))
        drawn = [m.delta.new_element.html.body for m in messages if m.delta.HasField("new_element")]
        ends = [m.script_finished for m in messages if m.WhichOneof("type") == "script_finished"]
        return drawn, [ForwardMsg.ScriptFinishedStatus.Name(end) for end in ends]

    @staticmethod
    async def messages(script: Path, num_requests: int) -> list[ForwardMsg]:
        session = AppSession(ScriptData(str(script), is_hello=False), MagicMock(), ScriptCache(), None, {})
        session.request_rerun(None)
        runner = session._scriptrunner
        assert runner is not None
        # The event loop is held here, so it handles no event of the script thread until that is about to end.
        until(lambda: runner._requests._state is ScriptRequestType.STOP)
        [fragment_id] = session._fragment_storage._fragments  # type: ignore[attr-defined]
        for _ in range(num_requests):
            session.request_rerun(ClientState(fragment_id=fragment_id))
        while session._scriptrunner is not None:
            await asyncio.sleep(0)
        return session.flush_browser_queue()

    def test_streamlit_drops_the_page_and_its_end(self, tmp_path: Path) -> None:
        assert self.sent(tmp_path, 1) == (["words"], ["FINISHED_FRAGMENT_RUN_SUCCESSFULLY"])

    @pytest.mark.parametrize("num_requests", [1, 2])
    def test_patched_they_are_sent_before_the_fragment(self, tmp_path: Path, num_requests: int) -> None:
        start_run_after_last_events_are_handled()
        drawn, ends = self.sent(tmp_path, num_requests)
        assert drawn == ["page", "words"]
        assert (ends[0], ends[-1]) == ("FINISHED_SUCCESSFULLY", "FINISHED_FRAGMENT_RUN_SUCCESSFULLY")


class StoppedError(Exception):
    """In place of Streamlit's RerunException."""


class TestCallbacks:
    """A session whose browser has requested a rerun: each use of the session stops the script that is running."""

    @pytest.fixture
    def state(self, monkeypatch: pytest.MonkeyPatch) -> SafeSessionState:
        def interrupt(_runner: ScriptRunner) -> None:
            raise StoppedError

        monkeypatch.setattr(ScriptRunner, "_maybe_handle_execution_control_request", interrupt)
        monkeypatch.setattr(SessionState, "on_script_will_rerun", lambda _state, callback, **_: callback())
        finish_callbacks_before_rerun()
        runner = object.__new__(ScriptRunner)
        return SafeSessionState(SessionState(), runner._maybe_handle_execution_control_request)

    @staticmethod
    def act(state: SafeSessionState) -> None:
        state["first"] = 1
        state["second"] = 2

    @pytest.mark.parametrize("is_patched", [False, True])
    def test_streamlit_cuts_a_callback_off_when_a_rerun_is_requested(
        self, is_patched: bool, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        if is_patched:
            finish_callbacks_before_rerun()
        monkeypatch.setattr(SessionState, "on_script_will_rerun", lambda _state, callback, **_: callback())
        runner = object.__new__(ScriptRunner)
        runner._script_thread, runner._execing, runner._requests = threading.current_thread(), True, ScriptRequests()
        session = SessionState()
        state = SafeSessionState(session, runner._maybe_handle_execution_control_request)

        def callback() -> None:
            state["first"] = 1
            runner._requests.request_rerun(RerunData())
            state["second"] = 2

        with contextlib.nullcontext() if is_patched else pytest.raises(RerunException):
            state.on_script_will_rerun(callback)  # type: ignore[arg-type]
        assert ("first" in session, "second" in session) == (True, is_patched)

    def test_a_script_is_interrupted_at_its_first_use_of_the_session(self, state: SafeSessionState) -> None:
        with pytest.raises(StoppedError):
            self.act(state)
        with uninterrupted():
            assert "first" not in state

    def test_a_callback_runs_to_its_end(self, state: SafeSessionState) -> None:
        state.on_script_will_rerun(lambda: self.act(state))  # type: ignore[arg-type]
        with uninterrupted():
            assert (state["first"], state["second"]) == (1, 2)

    def test_an_inner_uninterrupted_block_does_not_end_the_outer_one(self, state: SafeSessionState) -> None:
        with uninterrupted():
            uninterrupted()(self.act)(state)
            assert (state["first"], state["second"]) == (1, 2)
        with pytest.raises(StoppedError):
            self.act(state)

    def test_after_an_error_scripts_are_interrupted_again(self, state: SafeSessionState) -> None:
        with pytest.raises(ZeroDivisionError), uninterrupted():
            raise ZeroDivisionError
        with pytest.raises(StoppedError):
            self.act(state)


class TestFragmentRerunDuringFullRerun:
    FULL = RerunData(page_script_hash="new page", query_string="requests=3")
    FRAGMENT = RerunData(page_script_hash="page just left", fragment_id="clock", is_auto_rerun=True)

    @staticmethod
    def merged(*requests: RerunData) -> RerunData:
        pending = ScriptRequests()
        assert all(pending.request_rerun(request) for request in requests)
        request = pending.on_scriptrunner_ready()
        return request.rerun_data

    def test_streamlit_reruns_the_page_just_left(self) -> None:
        assert self.merged(self.FULL, self.FRAGMENT).page_script_hash == "page just left"

    @pytest.mark.parametrize("order", [(FULL, FRAGMENT), (FRAGMENT, FULL)])
    def test_patched_the_new_page_is_run(self, order: tuple[RerunData, RerunData]) -> None:
        ignore_fragment_rerun_during_full_rerun()
        data = self.merged(*order)
        assert (data.page_script_hash, data.query_string) == ("new page", "requests=3")
        assert data.fragment_id_queue == []

    def test_a_fragments_request_alone_runs_it(self) -> None:
        ignore_fragment_rerun_during_full_rerun()
        assert self.merged(self.FRAGMENT).fragment_id_queue == ["clock"]


class TestClicksInFragmentReruns:
    @staticmethod
    def num_clicks(*requests: RerunData) -> int:
        """Runs that get the click, when each request is taken before the next one comes."""
        pending, num_clicks = ScriptRequests(), 0
        for request in requests:
            assert pending.request_rerun(request)
            states = pending.on_scriptrunner_ready().rerun_data.widget_states
            assert states is not None
            assert [state.int_value for state in states.widgets if state.id == "slider"] == [3]
            num_clicks += any(state.trigger_value for state in states.widgets if state.id == "button")
        return num_clicks

    CLICKED = WidgetStates(
        widgets=[WidgetState(id="slider", int_value=3), WidgetState(id="button", trigger_value=True)]
    )
    CLOCK = RerunData(widget_states=CLICKED, fragment_id="clock", is_auto_rerun=True)
    CLICK = RerunData(widget_states=CLICKED)

    def test_streamlit_hands_one_click_to_each_request(self) -> None:
        assert self.num_clicks(self.CLOCK, self.CLOCK, self.CLICK) == 3

    def test_patched_only_its_own_request_has_it(self) -> None:
        ignore_clicks_in_fragment_reruns()
        assert self.num_clicks(self.CLOCK, self.CLOCK, self.CLICK) == 1

    def test_a_click_that_waits_is_kept_when_a_clock_joins_it(self) -> None:
        ignore_clicks_in_fragment_reruns()
        pending = ScriptRequests()
        assert pending.request_rerun(self.CLICK) and pending.request_rerun(self.CLOCK)
        states = pending.on_scriptrunner_ready().rerun_data.widget_states
        assert states is not None
        assert [state.trigger_value for state in states.widgets if state.id == "button"] == [True]


class TestInlineScripts:
    @staticmethod
    def digest(script: str) -> str:
        return f"sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}"

    def test_streamlits_page_has_the_one_that_was_read_by_hand(self) -> None:
        assert inline_script_hashes() == [self.digest("\n      window.prerenderReady = false\n    ")]

    def test_scripts_are_found_whatever_their_attributes_and_only_inline_ones(self) -> None:
        page = (
            '<script nonce="x" type="module">a && b("<p>")</script><style>p {}</style><SCRIPT>c</SCRIPT>'
            '<script src="d.js"></script><p>e</p><script type="importmap"\n>{}</script>'
        )
        assert inline_script_hashes(page) == [self.digest(script) for script in ('a && b("<p>")', "c", "{}")]

    def test_a_missing_page_is_a_sentence_with_the_version(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(streamlit, "__file__", str(tmp_path / "__init__.py"))
        with pytest.raises(RuntimeError, match=r"written for 1\.67\.0"):
            inline_script_hashes()
