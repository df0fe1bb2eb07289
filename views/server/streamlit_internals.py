"""Everything of this app that relies on Streamlit's private code: six patches, and four readings.

Written for the release in `STREAMLIT_VERSION`. `apply_patches` compares the signatures that each patch relies on with
the installed Streamlit, and leaves out a patch that does not fit: the app still starts, with a warning that says what
may go wrong. How to move to another release: docs/upgrading.md.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import importlib
import inspect
import logging
import threading
import weakref
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import streamlit
from streamlit.runtime.scriptrunner import get_script_run_ctx

STREAMLIT_VERSION = "1.67.0"
_SESSION, _QUEUE = "streamlit.runtime.app_session:AppSession", "streamlit.runtime.forward_msg_queue:ForwardMsgQueue"
_RUNNER = "streamlit.runtime.scriptrunner.script_runner:ScriptRunner"
_REQUESTS = "streamlit.runtime.scriptrunner_utils.script_requests:"
_thread = threading.local()


# -- patches --


def disable_pages_directory() -> None:
    """Make Streamlit take `pages/` for pages of `st.navigation` from the first visitor on.

    Until a session has called `st.navigation`, Streamlit treats a folder of that name as its older kind of pages and
    answers a first deep link by running the page's file alone, without `app.py` around it.
    """
    from streamlit.runtime.pages_manager import PagesManager

    PagesManager.uses_pages_directory = False


def keep_undelivered_fragment_deltas() -> None:
    """When a fragment reruns, keep the deltas of its last run that have not been sent yet.

    `ForwardMsgQueue.clear` drops them but keeps the deltas of elements after the fragment. On a busy machine the
    browser then receives element 6 of a page without element 5, raises "Bad delta path index", and the page stays
    blank.
    """
    from streamlit.runtime.forward_msg_queue import ForwardMsgQueue

    clear = ForwardMsgQueue.clear

    def clear_all_or_nothing(
        queue: ForwardMsgQueue, retain_lifecycle_msgs: bool = False, fragment_ids_this_run: list[str] | None = None
    ) -> None:
        dropped: list[str] | None = None if fragment_ids_this_run is None else []
        clear(queue, retain_lifecycle_msgs, dropped)

    ForwardMsgQueue.clear = clear_all_or_nothing  # type: ignore[assignment, method-assign]


def start_run_after_last_events_are_handled() -> None:
    """Start a session's next ScriptRunner when the event loop has handled all events of the one before.

    A rerun request may arrive just after the script thread has looked for one the last time. `AppSession` then starts
    another ScriptRunner at once and ignores the unhandled events of the old one: its last deltas, and that its run has
    finished. The browser keeps elements that the run no longer drew until the next run of the whole page. Fragments
    with `run_every` send requests so often that a slow machine gets there.
    """
    from streamlit.runtime.app_session import AppSession, AppSessionState
    from streamlit.runtime.scriptrunner_utils.script_requests import RerunData

    create, handle = AppSession._create_scriptrunner, AppSession._handle_scriptrunner_event_on_event_loop
    waiting: weakref.WeakKeyDictionary[AppSession, list[RerunData]] = weakref.WeakKeyDictionary()

    def request(session: AppSession, data: RerunData) -> None:
        runner = session._scriptrunner
        if runner is None:
            create(session, data)
        elif not runner.request_rerun(data):  # it is shutting down, and its last events have not been handled
            waiting.setdefault(session, []).append(data)

    def handle_then_request(session: AppSession, *args: Any, **kwargs: Any) -> None:
        handle(session, *args, **kwargs)
        if session._scriptrunner is None:
            requests = waiting.pop(session, [])
            for data in requests if session._state is not AppSessionState.SHUTDOWN_REQUESTED else []:
                request(session, data)

    AppSession._create_scriptrunner = request  # type: ignore[assignment, method-assign]
    AppSession._handle_scriptrunner_event_on_event_loop = handle_then_request  # type: ignore[assignment, method-assign]


def finish_callbacks_before_rerun() -> None:
    """Let callbacks run to their end when a rerun is requested meanwhile; also what is within `uninterrupted`.

    Streamlit stops the script at its next use of the session, in a callback too: it is then half done, and never
    called again.
    """
    from streamlit.runtime.scriptrunner.script_runner import ScriptRunner
    from streamlit.runtime.state import SafeSessionState

    interrupt = ScriptRunner._maybe_handle_execution_control_request
    run_callbacks = SafeSessionState.on_script_will_rerun

    def interrupt_if_allowed(runner: ScriptRunner) -> None:
        if not getattr(_thread, "is_uninterrupted", False):
            interrupt(runner)

    ScriptRunner._maybe_handle_execution_control_request = interrupt_if_allowed  # type: ignore[assignment, method-assign]
    SafeSessionState.on_script_will_rerun = uninterrupted()(run_callbacks)  # type: ignore[method-assign]


def ignore_fragment_rerun_during_full_rerun() -> None:
    """Drop the automatic rerun of a fragment while a rerun of the whole page is pending, which draws it too.

    `ScriptRequests` merges both requests and takes page and query string from the later one: those of the page that
    the reader has just left.
    """
    from streamlit.runtime.scriptrunner_utils.script_requests import (
        RerunData,
        ScriptRequests,
        ScriptRequestType,
        _is_full_app_rerun,
    )

    request = ScriptRequests._request_rerun_locked

    def request_unless_full_rerun_is_pending(requests: ScriptRequests, new: RerunData) -> bool:
        is_pending = requests._state is ScriptRequestType.RERUN and _is_full_app_rerun(requests._rerun_data)
        return (is_pending and new.is_auto_rerun) or request(requests, new)

    ScriptRequests._request_rerun_locked = request_unless_full_rerun_is_pending  # type: ignore[assignment, method-assign]


def ignore_clicks_in_fragment_reruns() -> None:
    """Take a click only from the request that it caused, not from the automatic rerun of a fragment.

    The browser sends a click in a task of its own and forgets it only then. The timers of fragments that are due in
    between send the values of all widgets too, the click among them: its callback is called once for each of them.
    """
    from streamlit.proto.WidgetStates_pb2 import WidgetStates
    from streamlit.runtime.scriptrunner_utils.script_requests import (
        RerunData,
        ScriptRequests,
        _has_active_trigger_value,
    )

    request = ScriptRequests._request_rerun_locked

    def request_without_clicks(requests: ScriptRequests, new: RerunData) -> bool:
        if new.is_auto_rerun and new.widget_states is not None:
            lasting = [state for state in new.widget_states.widgets if not _has_active_trigger_value(state)]
            new = replace(new, widget_states=WidgetStates(widgets=lasting))
        return request(requests, new)

    ScriptRequests._request_rerun_locked = request_without_clicks  # type: ignore[assignment, method-assign]


@dataclass(frozen=True)
class Patch:
    """One patch, and what must be true of Streamlit for it to fit.

    upstream: the issue or pull request of Streamlit that it answers.
    without_it: what a visitor may see when it is not applied, in one sentence.
    signatures: parameter names of the functions that it replaces or calls, by "module:qualified name".
    attributes: attributes that it uses, by the class that has them or sets them in `__init__`.
    """

    apply: Callable[[], None]
    upstream: str
    without_it: str
    signatures: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    attributes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


PATCHES = (
    Patch(
        disable_pages_directory,
        "Review of pull request 10276: with a `pages` folder beside `st.navigation`, deep links go to the older pages",
        "The first deep link to a page may show it without its frame.",
        attributes={"streamlit.runtime.pages_manager:PagesManager": ("uses_pages_directory",)},
    ),
    Patch(
        keep_undelivered_fragment_deltas,
        "No issue is known: pull request 9381 introduced it; issue 17030 reports the same for another kind of message",
        "A page may stay blank on a busy machine until it is reloaded.",
        signatures={f"{_QUEUE}.clear": ("self", "retain_lifecycle_msgs", "fragment_ids_this_run")},
    ),
    Patch(
        start_run_after_last_events_are_handled,
        "Issue 9921: `AppSession.request_rerun` describes the race, and prevents it for fragments that are gone",
        "Elements of an earlier run may stay on a page.",
        signatures={
            f"{_SESSION}._create_scriptrunner": ("self", "initial_rerun_data"),
            f"{_SESSION}._handle_scriptrunner_event_on_event_loop": (
                "self",
                "sender",
                "event",
                "forward_msg",
                "exception",
                "client_state",
                "page_script_hash",
                "fragment_ids_this_run",
                "pages",
                "run_descriptor",
            ),
            f"{_RUNNER}.request_rerun": ("self", "rerun_data"),
        },
        attributes={_SESSION: ("_scriptrunner", "_state")},
    ),
    Patch(
        finish_callbacks_before_rerun,
        "Issue 10578 (open)",
        "A click during another one's callback may cut that callback off.",
        signatures={
            f"{_RUNNER}._maybe_handle_execution_control_request": ("self",),
            "streamlit.runtime.state:SafeSessionState.on_script_will_rerun": (
                "self",
                "fresh_widget_states",
                "replay_trigger_states",
                "replay_trigger_values",
                "is_history_navigation",
            ),
        },
    ),
    Patch(
        ignore_fragment_rerun_during_full_rerun,
        "No issue is known; pull request 15088 (closed, not merged) would have dropped such requests in the browser",
        "A page that is being left may come back.",
        signatures={
            f"{_REQUESTS}ScriptRequests._request_rerun_locked": ("self", "new_data"),
            f"{_REQUESTS}_is_full_app_rerun": ("rerun_data",),
        },
        attributes={f"{_REQUESTS}ScriptRequests": ("_state", "_rerun_data")},
    ),
    Patch(
        ignore_clicks_in_fragment_reruns,
        "No issue is known; the browser's `scheduleFlush` came with the triggers of components (version 2)",
        "One click may act several times on a page that updates by itself.",
        signatures={
            f"{_REQUESTS}ScriptRequests._request_rerun_locked": ("self", "new_data"),
            f"{_REQUESTS}_has_active_trigger_value": ("state",),
        },
    ),
)


def apply_patches() -> None:
    """Apply the patches that fit the installed Streamlit, once, before the first visitor; warn about each other one."""
    log = logging.getLogger(__name__)
    if streamlit.__version__ != STREAMLIT_VERSION:
        log.warning(
            "Streamlit %s is installed, but this app is written for %s: install that one, or see docs/upgrading.md.",
            streamlit.__version__, STREAMLIT_VERSION,
        )  # fmt: skip
    for patch, differences in [(patch, unmet_expectations(patch)) for patch in PATCHES]:  # before the first is applied
        if differences:
            log.warning(
                "A patch for Streamlit %s is left out, because %s. %s", STREAMLIT_VERSION, " and ".join(differences),
                patch.without_it,
            )  # fmt: skip
        else:
            patch.apply()


def unmet_expectations(patch: Patch) -> list[str]:
    """How the installed Streamlit differs from what the patch expects; empty when the patch fits."""
    unmet = []
    for path, parameters in patch.signatures.items():
        function = _resolve(path)
        if function is None:
            unmet.append(f"{path} does not exist")
        elif (found := tuple(inspect.signature(function).parameters)) != parameters:
            unmet.append(f"{path} takes {', '.join(found) or 'nothing'}")
    for path, names in patch.attributes.items():
        initialize = _resolve(f"{path}.__init__")
        known = initialize.__code__.co_names if initialize is not None else ()
        unmet += [f"{path} has no {n}" for n in names if n not in known and not hasattr(_resolve(path), n)]
    return unmet


def _resolve(path: str) -> Any:
    """The object of a path such as "package.module:Class.method"; None when there is none."""
    module, _, names = path.partition(":")
    try:
        found: Any = importlib.import_module(module)
        for name in names.split("."):
            found = getattr(found, name)
    except (ImportError, AttributeError):
        return None
    return found


@contextlib.contextmanager
def uninterrupted() -> Iterator[None]:
    """Around what must not stop half done when the browser requests a rerun. Not around what takes long.

    Also a decorator: `@uninterrupted()`.
    """
    before = getattr(_thread, "is_uninterrupted", False)
    _thread.is_uninterrupted = True
    try:
        yield
    finally:
        _thread.is_uninterrupted = before


# -- readings --


def is_history_navigation() -> bool:
    """Whether this run was requested by a step through the browser's history: Back, Forward, or a follower's bar."""
    return bool(getattr(get_script_run_ctx(suppress_warning=True), "is_history_navigation", False))


def current_page_hash() -> str:
    """Streamlit's hash of the page that this run draws; empty outside of a run."""
    return str(getattr(get_script_run_ctx(suppress_warning=True), "page_script_hash", ""))


def index_html() -> str:
    """Streamlit's own `index.html`. Raises RuntimeError when it is not where it should be."""
    file = Path(streamlit.__file__).parent / "static" / "index.html"
    if not file.is_file():
        raise RuntimeError(f"Streamlit has no static/index.html: this app is written for {STREAMLIT_VERSION}.")
    return file.read_text("utf-8")


def inline_script_hashes(page: str | None = None) -> list[str]:
    """`sha256-...` of every inline script of an HTML page, as a content security policy names them.

    page: by default Streamlit's own, `index_html`.
    """
    reader = _InlineScripts()
    reader.feed(index_html() if page is None else page)
    reader.close()
    return [f"sha256-{base64.b64encode(hashlib.sha256(s.encode()).digest()).decode()}" for s in reader.scripts]


class _InlineScripts(HTMLParser):
    """Collects the text of every `<script>` without `src`."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=False)
        self.scripts: list[str] = []
        self._is_inside = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._is_inside = tag == "script" and "src" not in dict(attrs)
        if self._is_inside:
            self.scripts.append("")

    def handle_data(self, data: str) -> None:
        if self._is_inside:
            self.scripts[-1] += data

    def handle_endtag(self, tag: str) -> None:
        self._is_inside = False
