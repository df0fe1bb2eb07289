"""The records of pages: unique where they must be, each with its script, addresses and keys as they always were."""

from __future__ import annotations

from course.pages import COURSE, EXPERIMENTS, LESSONS, find_lessons
from tests.helpers.app_server import ROOT

ADDRESSES = [
    None, "what_is_cached", "reserved_space", "waste_between", "growth", "block_table", "sharing", "batch", "summary",
    "live_engine", "equation", "shuffle", "sabotage", "race", "why_not_shared", "preemption", "paper",
    "open_trace", "remote_server", "decode_log", "capacity", "traffic", "ready", "room",
]  # fmt: skip
KEYS = {"reserved_space": "reservation", "waste_between": "fragmentation"}
"""Where the key, which seeds the questions, is not the address: links of before must open the same."""


def test_addresses_and_their_order_are_those_of_links_that_are_out_there() -> None:
    assert [page.url_path for page in COURSE] == ADDRESSES


def test_the_keys_that_seed_questions_never_change() -> None:
    lessons = find_lessons()
    assert {lesson.url_path: lesson.key for lesson in lessons} == {
        lesson.url_path: KEYS.get(lesson.url_path, lesson.url_path) for lesson in lessons
    }


def test_places_and_titles_are_taken_once() -> None:
    for values in ([page.order for page in COURSE], [page.title for page in COURSE]):
        assert len(set(values)) == len(values)
    assert len(LESSONS) + len(EXPERIMENTS) == len(find_lessons()) == 13


def test_every_page_has_its_script_and_every_script_its_page() -> None:
    assert {page.file for page in COURSE} == {f"pages/{file.name}" for file in (ROOT / "pages").glob("*.py")}


def test_a_slider_is_called_the_same_in_every_lesson() -> None:
    labels = [(name, str(label)) for lesson in find_lessons() for name, label in lesson.sliders.items()]
    assert len(dict(labels)) == len(set(labels))
