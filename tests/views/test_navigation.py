"""The navigation's sections and names come from the pages' records."""

from __future__ import annotations

import re
from itertools import groupby

from course.pages import COURSE, HOME, LESSONS
from views.navigation import SECTIONS, navigation_name, navigation_rules


def test_pages_are_grouped_by_section_in_order() -> None:
    assert [section for section, _pages in groupby(COURSE, key=lambda page: page.section)] == list(SECTIONS)


def test_each_section_has_its_heading_at_its_first_page() -> None:
    headings = re.findall(r'li:nth-child\((\d+)\)::before \{ content: "(\w+)"; \}', " ".join(navigation_rules()))
    assert headings == [("1", "Learn"), ("10", "Try"), ("11", "Lab"), ("18", "Tools")]


def test_lessons_are_numbered_and_names_are_short() -> None:
    names = [navigation_name(lesson) for lesson in LESSONS]
    assert names == [
        "1 What is cached", "2 Unused reservations", "3 Gaps", "4 Pages", "5 Block table", "6 Sharing", "7 Batch",
    ]  # fmt: skip
    assert navigation_name(HOME) == "Start here"
    assert max(len(navigation_name(page)) for page in COURSE) <= 22
