"""Predict questions in a room: an attendee's answer is counted, the presenter sees how many chose what."""

from __future__ import annotations

import streamlit as st

from engine.questions import Question
from views.html_parts import escaped
from views.room.answers import QuestionName
from views.room.room_tab import RoomTab, room_tab

SECONDS_BETWEEN_LOOKS = 1.0


def share_prediction(lesson: str, asked: Question, chosen: int | None) -> None:
    """Count this tab's answer, or show the presenter what the room answered. Nothing in a tab without a room."""
    tab = room_tab()
    room = None if tab is None else tab.room
    if tab is None or room is None:
        return
    name = QuestionName(lesson, asked.seed)
    if tab.token is not None:
        st.fragment(_draw_votes, run_every=SECONDS_BETWEEN_LOOKS, key=f"votes_{lesson}")(tab, name, asked)
    elif chosen is not None:
        room.answer(tab.member, name, chosen)


def _draw_votes(tab: RoomTab, name: QuestionName, asked: Question) -> None:
    the_desk = tab.desk
    if the_desk is not None:
        st.html(votes([choice.text for choice in asked.choices], the_desk.counts(name, len(asked.choices))))


def votes(choices: list[str], counts: tuple[int, ...]) -> str:
    """A bar and a number for each choice; the bars' unit is the largest number."""
    most, total = max(counts, default=0), sum(counts)
    rows = "".join(
        f'<li><span class="choice">{escaped(text)}</span>'
        f'<b data-votes="{index}">{number}</b>'
        f'<span class="votes" style="--pv-share: {number / most if most else 0:.3f}" aria-hidden="true"></span></li>'
        for index, (text, number) in enumerate(zip(choices, counts, strict=True))
    )
    return f'<div class="pv-votes"><p>Answers in the room: <b data-votes="all">{total}</b></p><ol>{rows}</ol></div>'
