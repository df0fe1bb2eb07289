"""Turning pages by the links of the sidebar."""

from __future__ import annotations

from playwright.sync_api import Locator, Page

from course.lesson import CoursePage
from views.navigation import navigation_name


def navigation_link(page: Page, course_page: CoursePage) -> Locator:
    return page.get_by_test_id("stSidebarNav").get_by_role("link", name=navigation_name(course_page), exact=True)
