"""The page's controls: server or file, moment, rank and vocabulary, a prompt to send, and the download."""

from __future__ import annotations

import streamlit as st

from engine.i18n import N_, _, blocks_counted
from engine.remote.addresses import LONGEST_ADDRESS
from engine.remote.http import HttpError
from engine.remote.prompt import LONGEST_PROMPT, MOST_TOKENS, PromptRequest, PromptResult, submit_prompt
from engine.remote.server import RemoteServer
from views.elements.text_box import text_box
from views.html_parts import escaped, notice
from views.remote.viewed_source import (
    MAX_FILE,
    MAX_RANKS,
    MOMENT,
    ViewedSource,
    attach_typed,
    open_branches,
    open_file,
    open_recorded,
)
from views.remote.vocabulary import IDS, Vocabulary, default_vocabulary_name, vocabulary_names, vocabulary_of
from views.server.model_registry import model_registry
from views.url_values import NumberRule, Rule, TextRule

EVENTS, REPLAY, API = "tcp://127.0.0.1:5557", "tcp://127.0.0.1:5558", "http://127.0.0.1:8000"
START_HERE = N_(
    "No server at hand? Open the recorded stream, or start one on this machine: python -m engine.serve. "
    "Its addresses are the ones filled in."
)
VOCABULARY_REFRESH_SECONDS = 0.5
NO_TEXT = N_("The server writes no text for its tokens, so their ids are shown: {problem}")
RECORDED_NOTE = N_("Recorded earlier: no server is contacted.")
ANSWER_REFRESH_SECONDS = 0.3
PROMPT = TextRule("remote_prompt", N_("The prompt"), LONGEST_PROMPT)
EXAMPLE = "You are a patient teacher. Answer in one short sentence.\n\nWhat is a page of memory?"


def rules() -> list[Rule]:
    """Rules for the values in the URL."""
    return [
        TextRule("events", N_("Events address"), LONGEST_ADDRESS),
        TextRule("replay", N_("Replay address"), LONGEST_ADDRESS),
        TextRule("api", N_("HTTP address"), LONGEST_ADDRESS),
        NumberRule("ranks", N_("Data-parallel ranks"), 1, MAX_RANKS, 1),
    ]


def draw_addresses(viewed: ViewedSource) -> None:
    """Address fields and the buttons that open something."""
    events_side, replay_side, api_side = st.columns(3)
    with events_side:
        st.text_input(_("Events address"), EVENTS, key="events", bind="query-params")
    with replay_side:
        st.text_input(_("Replay address"), REPLAY, key="replay", bind="query-params",
                      help=_("For events sent before you attached; optional."))  # fmt: skip
    with api_side:
        st.text_input(_("HTTP address"), API, key="api", bind="query-params",
                      help=_("For metrics and prompts; optional."))  # fmt: skip
    with st.container(horizontal=True, key="remote_buttons"):
        st.button(_("Attach"), key="attach", on_click=_attach, args=(viewed,))
        st.button(_("Open the recorded vLLM stream"), key="open_recorded", on_click=open_recorded, args=(viewed,))
        st.button(
            _("Open a recording of shared prefixes"), key="open_branches", on_click=open_branches,
            args=(viewed,),
            help=_("vLLM 0.32 with its metrics: prefixes that branch, evictions, requests that preempt each other."),
        )  # fmt: skip
        st.button(_("Close"), key="close_remote", disabled=viewed.source is None, on_click=viewed.show, args=(None,))
    with st.expander(_("More: data-parallel ranks, a file")):
        st.number_input(
            _("Data-parallel ranks"), 1, MAX_RANKS, 1, key="ranks", bind="query-params",
            help=_("Each rank publishes on the next port."),
        )  # fmt: skip
        st.file_uploader(
            _("A trace or a recording (.json, .msgpack)"), type=["json", "msgpack"], key="remote_file",
            on_change=_open_file, args=(viewed,), max_upload_size=MAX_FILE >> 20,
        )  # fmt: skip


def draw_problems(viewed: ViewedSource) -> None:
    """The last problem, or what to do first."""
    if viewed.problem:
        st.html(notice(viewed.problem, "problem"))
    elif viewed.source is None:
        st.html(notice(_(START_HERE)))


def _attach(viewed: ViewedSource) -> None:
    values = st.session_state
    attach_typed(viewed, values["events"], values["replay"], values["api"], values["ranks"])


def _open_file(viewed: ViewedSource) -> None:
    file = st.session_state["remote_file"]
    if file is not None:
        open_file(viewed, file.name, file.getvalue())


def draw_choices(viewed: ViewedSource) -> tuple[int | None, Vocabulary]:
    """Draw the choices above the picture. Returns the moment, None for the newest as it comes, and the vocabulary."""
    source = viewed.source
    assert source is not None
    viewed.head = viewed.read_head()
    facts = viewed.head.facts
    st.html(f"<h2>{escaped(_(facts.name))}</h2>")
    if facts.is_recorded:
        st.html(notice(_(RECORDED_NOTE)))
    left, right = st.columns(2)
    with left:
        vocabulary = _draw_vocabulary(viewed, facts.model)
    with right:
        _draw_ranks(viewed)
    follows = facts.is_live and st.toggle(_("Follow the server"), True, key="remote_follow")
    return (None if follows else _draw_slider(viewed)), vocabulary


def _draw_vocabulary(viewed: ViewedSource, model: str | None) -> Vocabulary:
    options = vocabulary_names(viewed.detokenizer)
    likely = default_vocabulary_name(model, viewed.detokenizer)
    choice = st.selectbox(
        _("Show tokens as"), options, options.index(likely), format_func=_, key=f"remote_words_{likely}"
    )
    vocabulary = vocabulary_of(choice, viewed.detokenizer)
    if vocabulary is None:
        _wait_for_vocabulary(choice)
    asked = None if viewed.server is None else viewed.server.detokenizer
    if choice == IDS and asked is not None and asked.state == "refuses":
        st.html(notice(_(NO_TEXT).format(problem=asked.problem)))
    return vocabulary or Vocabulary()


@st.fragment(run_every=VOCABULARY_REFRESH_SECONDS)
def _wait_for_vocabulary(choice: str) -> None:
    """Say why token ids are shown, and rerun the page when the vocabulary is loaded."""
    loading = model_registry().request(choice)
    if loading.model is not None:
        st.rerun()
    why = loading.problem or _("The tokenizer of {choice} is loading.").format(choice=choice)
    st.html(notice(_("{why} Until then, token ids are shown.").format(why=why)))


def _draw_ranks(viewed: ViewedSource) -> None:
    """Only where there are several."""
    source = viewed.source
    ranks = [] if source is None else sorted(source.at(source.last_step).prefix_cache.ranks)
    if len(ranks) > 1:
        st.selectbox(_("Data-parallel rank"), ranks, key="remote_rank")


def _draw_slider(viewed: ViewedSource) -> int:
    """The chosen moment; the newest until a reader chooses."""
    source = viewed.source
    assert source is not None
    first, last = source.first_step, source.last_step
    if first == last:
        return last
    chosen = st.session_state.get(MOMENT)
    if not isinstance(chosen, int) or not first <= chosen <= last:
        st.session_state[MOMENT] = last
    return st.slider(_("Moment"), first, last, key=MOMENT, help=_("One moment per message, in order of arrival."))


def draw_prompt(viewed: ViewedSource) -> None:
    """The form for a prompt, and the answer to the last one."""
    server = viewed.server
    if server is None or server.addresses.api is None:
        return
    st.subheader(_("Send a prompt"))
    text_box(PROMPT, _("Prompt for the server"), EXAMPLE, height=80)
    left, middle, right = st.columns([1, 1, 2], vertical_alignment="bottom")
    with left:
        st.number_input(_("New tokens at most"), 1, MOST_TOKENS, 16, key="remote_max_tokens")
    with middle:
        st.toggle(_("As chat"), True, key="remote_as_chat", help=_("Uses the model's chat template."))
    with right:
        st.text_input(_("API key, if the server needs one"), key="remote_api_key", type="password")
    is_busy = viewed.asking is not None
    st.button(_("Send"), key="send_prompt", disabled=is_busy, on_click=_send, args=(viewed, server))
    if is_busy:
        _wait_for_answer(viewed)
    if viewed.asked is not None:
        _draw_answer(viewed.asked)


@st.fragment(run_every=ANSWER_REFRESH_SECONDS)
def _wait_for_answer(viewed: ViewedSource) -> None:
    answer = viewed.asking
    if answer is None:
        return
    if not answer.done():
        st.html(notice(_("The server is answering.")))
        return
    viewed.asking = None
    try:
        viewed.asked = answer.result()
    except HttpError as error:
        viewed.problem = str(error)
    st.rerun()


def _send(viewed: ViewedSource, server: RemoteServer) -> None:
    values = st.session_state
    request = PromptRequest(values["remote_prompt"], values["remote_max_tokens"], values["remote_as_chat"])
    viewed.problem, viewed.asked = "", None
    if not request.prompt.strip():
        viewed.problem = _("The prompt is empty: type at least one word.")
        return
    viewed.asking = submit_prompt(server, request, values["remote_api_key"])


def _draw_answer(asked: PromptResult) -> None:
    st.text(asked.text)
    stored, found = (
        blocks_counted(len(asked.stored)),
        blocks_counted(len(asked.found)),
    )
    if asked.is_exact:
        sentence = _(
            "This prompt and its answer stored {stored} and found {found} already cached. They are marked below."
        ).format(stored=stored, found=found)
    else:
        sentence = _(
            "The server sends no token ids, so blocks are matched by time only: {stored} stored while it answered."
        ).format(stored=stored)
    st.html(notice(sentence))


def draw_export(viewed: ViewedSource) -> None:
    """A download button; the file is made when it is pressed."""
    source = viewed.source
    if source is not None:
        st.download_button(
            _("Save as a trace file"), lambda: source.trace().to_json(), "trace.json", "application/json",
            key="remote_export", on_click="ignore",
        )  # fmt: skip
