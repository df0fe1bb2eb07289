"""Predict, then reveal: a seeded question above the picture. It can be skipped; nothing waits for an answer."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from course.lesson import Lesson
from course.question import Choice, Question
from engine.i18n import N_, _
from views.html_parts import escaped
from views.url_state import get_url_value, set_url_values, url_value_key
from views.url_values import NumberRule

LARGEST_SEED = 999_999
OF_EXPERIMENT = "question"
"""An experiment's own seed decides what it runs, so its question's has another name in the address."""
AnswerListener = Callable[[Question, int | None], None]
_listeners: set[AnswerListener] = set()
_groups: set[Callable[[], bool]] = set()


def listen_to_answers(listener: AnswerListener) -> None:
    """Call `listener(question, chosen)` in every run that draws a question, below it; registered once.

    `chosen` is the index of this tab's answer, None before there is one. The listener may draw.
    """
    _listeners.add(listener)


def open_questions_in(is_in_group: Callable[[], bool]) -> None:
    """Questions stand open in tabs of which `is_in_group()` is true: a group answers before it looks."""
    _groups.add(is_in_group)


def draw_question(lesson: Lesson, seed_name: str = "seed", *, expanded: bool = True) -> Question:
    """The question of this lesson and `?seed=`, its choices, and why the chosen one is right or wrong."""
    key = lesson.key
    seed = get_url_value(key, NumberRule(seed_name, N_("Seed of the question"), 0, LARGEST_SEED, 0), 0)
    asked = lesson.question(seed)
    expanded = expanded or any(is_in_group() for is_in_group in _groups)
    with st.expander(_("Predict first"), expanded=expanded, key=f"question_{key}"):
        st.html(_prompt(asked))
        choices, again = st.columns([4, 1], vertical_alignment="center")
        with choices:
            st.radio(
                _("Your prediction"),
                range(len(asked.choices)),
                index=None,
                format_func=lambda index: asked.choices[index].text,
                key=_answer_key(key, seed),
                persist_state="session",
                horizontal=True,
                label_visibility="collapsed",
            )
        with again:
            st.button(_("Another one"), key=f"another_{key}", on_click=_ask_another, args=(key, seed, seed_name))
        st.html(_verdict(_chosen(asked)))
    for listener in _listeners:
        listener(asked, st.session_state.get(_answer_key(key, seed)))
    return asked


def _chosen(asked: Question) -> Choice | None:
    index = st.session_state.get(_answer_key(asked.lesson, asked.seed))
    return None if index is None else asked.choices[index]


def _answer_key(lesson: str, seed: int) -> str:
    return url_value_key(lesson, f"answer_{seed}")


def _ask_another(lesson: str, seed: int, seed_name: str) -> None:
    set_url_values(lesson, **{seed_name: (seed + 1) % (LARGEST_SEED + 1)})
    st.session_state.pop(_answer_key(lesson, seed), None)


def _prompt(asked: Question) -> str:
    """One idea a line, the question itself last."""
    *given, ask = asked.prompt.splitlines()
    lines = "".join(f"<span>{escaped(line)}</span> " for line in given)
    return f'<p class="pv-ask" data-seed="{asked.seed}">{lines}<strong>{escaped(ask)}</strong></p>'


def _verdict(choice: Choice | None) -> str:
    """An empty line until a choice is made: it is a live region, so that the verdict is read out."""
    words = ""
    if choice is not None:
        mark = _("Right.") if choice.is_right else _("Not quite.")
        words = f"<strong>{escaped(mark)}</strong> {escaped(choice.why)}"
    return f'<p class="pv-verdict" role="status" data-verdict="{_kind(choice)}">{words}</p>'


def _kind(choice: Choice | None) -> str:
    return "none" if choice is None else "right" if choice.is_right else "wrong"
