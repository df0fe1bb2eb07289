"""Whoever works an experiment by keyboard keeps the keyboard: a result takes the focus away from no control."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from course.lesson import CoursePage
from course.race.lesson import LESSON as RACE
from course.shuffle.lesson import LESSON as SHUFFLE
from tests.helpers.app_server import AppServer
from tests.helpers.experiment_page import ExperimentPage


@pytest.mark.parametrize(("course_page", "label", "default"), [(SHUFFLE, "Block size", 4), (RACE, "Requests", 40)])
@pytest.mark.slow
def test_arrow_keys_keep_working_after_a_result(
    page: Page, app_server: AppServer, course_page: CoursePage, label: str, default: int
) -> None:
    experiment = ExperimentPage(page, app_server.url, course_page).open()
    box = page.get_by_test_id("stMain").get_by_label(label, exact=True)
    box.focus()
    for presses in (1, 2):
        with experiment.acting():
            page.keyboard.press("ArrowUp")
        expect(box).to_have_value(str(default + presses))
        expect(box).to_be_focused()
