"""Which moment, which rank, whose words: the choices above the picture."""

from __future__ import annotations

import streamlit as st

from views.html_parts import escaped, notice
from views.remote_shown import Shown
from views.remote_words import IDS, Words, choices, likely_choice, words_of
from views.server import model_shelf

SECONDS_BETWEEN_LOOKS = 0.5
RECORDED_NOTE = "Recorded: this happened earlier, and no server is asked."


def draw_choices(now: Shown) -> tuple[int | None, Words]:
    """The moment to show, None for the newest as it comes; and how to write tokens."""
    source = now.source
    assert source is not None
    facts = now.facts = source.facts
    st.html(f"<h2>{escaped(facts.name)}</h2>")
    if facts.is_recorded:
        st.html(notice(RECORDED_NOTE))
    left, right = st.columns(2)
    with left:
        words = _draw_words(facts.model)
    with right:
        _draw_ranks(now)
    follows = facts.is_live and st.toggle("Follow the server", True, key="remote_follow")
    return (None if follows else _draw_slider(now)), words


def _draw_words(model: str | None) -> Words:
    options = choices()
    likely = likely_choice(model)
    choice = st.selectbox("Tokens as", options, options.index(likely), key=f"remote_words_{likely}")
    words = words_of(choice)
    if choice != IDS and words.tokenizer is None:
        _wait_for_vocabulary(choice)
    return words


@st.fragment(run_every=SECONDS_BETWEEN_LOOKS)
def _wait_for_vocabulary(choice: str) -> None:
    """Say why ids are shown, and draw the page again when the vocabulary is there."""
    loading = model_shelf().ask(choice)
    if loading.model is not None:
        st.rerun()
    why = loading.problem or f"The vocabulary of {choice} is loading."
    st.html(notice(f"{why} Until then ids are shown."))


def _draw_ranks(now: Shown) -> None:
    """Only where there are several."""
    source = now.source
    ranks = [] if source is None else sorted(source.at(source.last_step).findable.ranks)
    if len(ranks) > 1:
        st.selectbox("Data-parallel rank", ranks, key="remote_rank")


def _draw_slider(now: Shown) -> int:
    """A moment of what was seen; the newest until a reader chooses."""
    source = now.source
    assert source is not None
    first, last = source.first_step, source.last_step
    if first == last:
        return last
    key = "remote_moment"
    chosen = st.session_state.get(key)
    if not isinstance(chosen, int) or not first <= chosen <= last:
        st.session_state[key] = last
    return st.slider("Moment", first, last, key=key, help="One moment a message, in the order they came.")
