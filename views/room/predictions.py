"""Predict questions in a room: an attendee's answer is counted, the presenter sees how many chose what."""

from __future__ import annotations

import streamlit as st

from course.question import Question
from engine.i18n import _
from views.html_parts import escaped
from views.room.answers import QuestionName
from views.room.tab import RoomTab, room_tab

POLL_SECONDS = 1.0


def is_in_room() -> bool:
    """Whether this tab takes part in a room, as presenter or attendee."""
    tab = room_tab()
    return tab is not None and tab.room is not None


def share_prediction(asked: Question, chosen: int | None) -> None:
    """Count this tab's answer, or show the presenter what the room answered. Nothing in a tab without a room."""
    tab = room_tab()
    room = None if tab is None else tab.room
    if tab is None or room is None:
        return
    name = QuestionName(asked.lesson, asked.seed)
    if tab.token is not None:
        st.fragment(_draw_votes, run_every=POLL_SECONDS, key=f"votes_{asked.lesson}")(tab, name, asked)
    elif chosen is not None:
        room.answer(tab.member, name, chosen)


def _draw_votes(tab: RoomTab, name: QuestionName, asked: Question) -> None:
    presenter = tab.presenter_api
    if presenter is not None:
        st.html(votes([choice.text for choice in asked.choices], presenter.counts(name, len(asked.choices))))


def votes(choices: list[str], counts: tuple[int, ...]) -> str:
    """A bar and a number for each choice; the bars' unit is the largest number."""
    most, total, title = max(counts, default=0), sum(counts), _("Answers in the room:")
    rows = "".join(
        f'<li><span class="choice">{escaped(text)}</span>'
        f'<b data-votes="{index}">{number}</b>'
        f'<span class="votes" style="--pv-share: {number / most if most else 0:.3f}" aria-hidden="true"></span></li>'
        for index, (text, number) in enumerate(zip(choices, counts, strict=True))
    )
    return f'<div class="pv-votes"><p>{title} <b data-votes="all">{total}</b></p><ol>{rows}</ol></div>'
