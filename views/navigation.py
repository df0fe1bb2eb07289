"""Links to the pages of the course, and the list that Streamlit's navigation takes, in sections."""

from __future__ import annotations

import json
from types import MappingProxyType

import streamlit as st
from streamlit.navigation.page import StreamlitPage

from course.lesson import CoursePage, Section
from course.messages import Facts
from course.pages import COURSE, HOME, lesson_number
from engine.i18n import N_, _

SECTIONS: dict[Section, str] = {"learn": N_("Learn"), "try": N_("Try"), "lab": N_("Lab"), "tools": N_("Tools")}


def neighbours(page: CoursePage) -> tuple[CoursePage | None, CoursePage | None]:
    """The pages before and after, None at either end."""
    position = COURSE.index(page)
    before = COURSE[position - 1] if position > 0 else None
    after = COURSE[position + 1] if position + 1 < len(COURSE) else None
    return before, after


def draw_previous(page: CoursePage) -> None:
    """A link to the page before, when there is one."""
    before, _after = neighbours(page)
    if before is not None:
        draw_link(before, _("Previous: **{title}**"))


def draw_next(page: CoursePage) -> None:
    """A link to the page after, when there is one."""
    _before, after = neighbours(page)
    if after is not None:
        draw_link(after, _("Next: **{title}**"))


def draw_link(page: CoursePage, label: str = "**{title}**", facts: Facts = MappingProxyType({})) -> None:
    """A link to the page; `label` may name its `{title}` and what `facts` holds."""
    st.page_link(page.file, label=label.format(**facts, title=_(page.title)), icon=page.icon)


def navigation_name(page: CoursePage) -> str:
    """What the navigation calls a page: its short name, after the number of a lesson."""
    number = lesson_number(page)
    return _(page.short_name) if number is None else f"{number} {_(page.short_name)}"


def navigation_pages(first: CoursePage = HOME) -> list[StreamlitPage]:
    """For `st.navigation`, which opens with `first`: a flat list, because its sections are no valid lists for a screen
    reader, and their headings cannot be reached by keyboard. `navigation_rules` draws the headings of ours.
    """
    return [
        st.Page(
            page.file,
            title=navigation_name(page),
            icon=page.icon if lesson_number(page) is None else None,
            url_path=page.url_path,
            default=page is first,
        )
        for page in COURSE
    ]


def course_page_of(page: StreamlitPage) -> CoursePage:
    """The record of a page that `navigation_pages` made."""
    return next(each for each in COURSE if (each.url_path or "") == page.url_path)


def navigation_rules() -> list[str]:
    """Rules of a style sheet for the headings of the navigation's sections, each in the item of its first page."""
    sections = [page.section for page in COURSE]
    return [
        f'[data-testid="stSidebarNavItems"] > li:nth-child({sections.index(section) + 1})::before'
        f" {{ content: {json.dumps(_(name))}; }}"
        for section, name in SECTIONS.items()
    ]
