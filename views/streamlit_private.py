"""The one place that touches what Streamlit keeps private."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import re
import threading
from collections.abc import Iterator
from pathlib import Path

import streamlit
from streamlit.runtime.forward_msg_queue import ForwardMsgQueue
from streamlit.runtime.pages_manager import PagesManager
from streamlit.runtime.scriptrunner import get_script_run_ctx
from streamlit.runtime.scriptrunner.script_runner import ScriptRunner
from streamlit.runtime.scriptrunner_utils.script_requests import (
    RerunData,
    ScriptRequests,
    ScriptRequestType,
    _is_full_app_rerun,
)
from streamlit.runtime.state import SafeSessionState

_thread = threading.local()


def pages_come_from_navigation_only() -> None:
    """Tell Streamlit that `pages/` holds pages of `st.navigation`, before the first visitor comes.

    Until some session has run `st.navigation`, Streamlit takes a folder of that name for its older kind of pages and
    would answer a first deep link by running the page's file alone, without `app.py` around it.
    """
    PagesManager.uses_pages_directory = False


def keep_unsent_drawings_of_fragments() -> None:
    """When a fragment runs again, what it drew before is sent first, even if that waits in the queue still.

    Streamlit drops it, but keeps what the page drew after the fragment. On a busy machine the browser then receives
    element 6 of a page without element 5, throws "Bad delta path index", and the whole page is blank for good.
    """
    clear = ForwardMsgQueue.clear

    def clear_all_or_nothing(
        queue: ForwardMsgQueue, retain_lifecycle_msgs: bool = False, fragment_ids_this_run: list[str] | None = None
    ) -> None:
        dropped: list[str] | None = None if fragment_ids_this_run is None else []
        clear(queue, retain_lifecycle_msgs, dropped)

    ForwardMsgQueue.clear = clear_all_or_nothing  # type: ignore[assignment, method-assign]


def let_callbacks_finish() -> None:
    """A click that arrives during another one's callback waits for its end.

    Streamlit would cut that callback off at its next use of the session: half done, and never called again.
    """
    interrupt = ScriptRunner._maybe_handle_execution_control_request
    begin_with_callbacks = SafeSessionState.on_script_will_rerun

    def interrupt_if_it_may(runner: ScriptRunner) -> None:
        if not getattr(_thread, "is_uninterrupted", False):
            interrupt(runner)

    ScriptRunner._maybe_handle_execution_control_request = interrupt_if_it_may  # type: ignore[assignment, method-assign]
    SafeSessionState.on_script_will_rerun = uninterrupted()(begin_with_callbacks)  # type: ignore[method-assign]


def let_no_clock_turn_the_page_back() -> None:
    """The clock of a fragment adds nothing while the whole page is to be run, which draws its fragments too.

    Streamlit would join both requests and take the page's address from the later one: that of the page just left.
    """
    request = ScriptRequests._request_rerun_locked

    def request_unless_the_page_comes(requests: ScriptRequests, new: RerunData) -> bool:
        page_comes = requests._state is ScriptRequestType.RERUN and _is_full_app_rerun(requests._rerun_data)
        return (page_comes and new.is_auto_rerun) or request(requests, new)

    ScriptRequests._request_rerun_locked = request_unless_the_page_comes  # type: ignore[assignment, method-assign]


@contextlib.contextmanager
def uninterrupted() -> Iterator[None]:
    """Around what must not stop half done when the browser asks for another run. Not around what takes long.

    Also a decorator: `@uninterrupted()`.
    """
    before = getattr(_thread, "is_uninterrupted", False)
    _thread.is_uninterrupted = True
    try:
        yield
    finally:
        _thread.is_uninterrupted = before


def came_by_history() -> bool:
    """Whether this run was asked for by a step through the browser's history: Back, Forward, or a follower's bar."""
    context = get_script_run_ctx(suppress_warning=True)
    return context is not None and context.is_history_navigation


def page_of_run() -> str:
    """Names the page that this run draws."""
    context = get_script_run_ctx(suppress_warning=True)
    return "" if context is None else context.page_script_hash


def inline_script_hashes() -> list[str]:
    """`sha256-...` of every script that stands inside Streamlit's own page, as a content security policy names it."""
    page = (Path(streamlit.__file__).parent / "static" / "index.html").read_text("utf-8")
    scripts = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
    return [f"sha256-{base64.b64encode(hashlib.sha256(s.encode()).digest()).decode()}" for s in scripts]
