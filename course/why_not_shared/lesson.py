"""The record of experiment "Why didn't these share?"."""

from __future__ import annotations

from course.lesson import Lesson
from engine.i18n import N_

LESSON = Lesson(
    order=140,
    key="why_not_shared",
    title=N_("Why didn't these share?"),
    short_name=N_("Why not shared"),
    section="lab",
    icon=":material/difference:",
    url_path="why_not_shared",
    promise=N_("Two prompts of your own: the first token that differs, and the smallest edit that shares more."),
    minutes={90: 4},
)
