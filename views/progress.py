"""What a reader has done, kept in their browser alone: the server is never told.

A lesson is done when its question is answered or its picture was taken to the last frame. The browser lists lessons by
key on the page's root element (assets/browser_state/progress.js), and what is made here shows or hides by them.
"""

from __future__ import annotations

import json
import secrets

import streamlit as st

from course.lesson import CoursePage, Lesson
from course.pages import COURSE
from course.question import Question
from engine.i18n import N_, _
from views.browser.assets import read_assets
from views.html_parts import escaped

_PROGRESS = st.components.v2.component("progress", js=read_assets("browser_state/progress.js"))
_PRINT = st.components.v2.component(
    "print_button", html='<button type="button"></button>', css=read_assets("page/print_button.css"),
    js=read_assets("page/print_button.js"),
)  # fmt: skip
_ANSWERED, _FORGET = "progress_answered", "progress_forget"
MILESTONES = {"answered": N_("question answered"), "played": N_("picture seen to the end")}


def draw_progress(page: CoursePage) -> None:
    """Call after the page: the browser hears which lesson it is, and whether its question has been answered."""
    lesson = page.key if isinstance(page, Lesson) else None
    _PROGRESS(
        key="progress",
        data={
            "lesson": lesson,
            "is_answered": lesson is not None and st.session_state.get(_ANSWERED) == lesson,
            "forget": st.session_state.get(_FORGET),
        },
        height=0,
    )


def note_answer(question: Question, chosen: int | None) -> None:
    """For `listen_to_answers`."""
    st.session_state[_ANSWERED] = None if chosen is None else question.lesson


def forget_progress() -> None:
    """For callbacks: the browser forgets what was done in it."""
    st.session_state[_FORGET] = secrets.token_hex(4)


def draw_print_button() -> None:
    """The browser's own dialog. What is printed is said in assets/page/style.css."""
    _PRINT(key="print", data={"words": _("Print this page")}, height="content", width="content")


def milestones_of(lesson: Lesson) -> str:
    """What was done in a lesson, as HTML of which the browser shows what is so."""
    done = "".join(
        f'<span class="pv-milestone" data-shown-by="{milestone}-{lesson.key}">{escaped(_(words))}</span>'
        for milestone, words in MILESTONES.items()
    )
    not_tried = escaped(_("not tried yet"))
    not_yet = f'<span class="pv-milestone" data-hidden-by="done-{lesson.key}">{not_tried}</span>'
    return f'<p class="pv-milestones">{done}{not_yet}</p>'


def progress_rules() -> list[str]:
    """Rules of a style sheet: ticks in the navigation, and what `milestones_of` shows."""
    rules, word = [], json.dumps(_("done"))
    for number, page in enumerate(COURSE, 1):
        if isinstance(page, Lesson):
            tick = f'[data-testid="stSidebarNavItems"] > li:nth-child({number})::after'
            rules += [
                f'html[data-done~="{page.key}"] {tick} {{ content: "✓"; content: "✓" / {word}; }}',
                f'html[data-done~="{page.key}"] [data-hidden-by="done-{page.key}"] {{ display: none; }}',
            ]
            rules += [
                f'html:not([data-{name}~="{page.key}"]) [data-shown-by="{name}-{page.key}"] {{ display: none; }}'
                for name in MILESTONES
            ]
    return rules
