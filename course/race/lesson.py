"""The record of experiment "Race for memory"."""

from __future__ import annotations

from course.lesson import Lesson
from engine.i18n import N_

LESSON = Lesson(
    order=130,
    key="race",
    title=N_("Race for memory"),
    short_name=N_("Race"),
    section="lab",
    icon=":material/flag:",
    url_path="race",
    promise=N_(
        "The same requests, four ways to allocate memory of the same size: which must wait first, "
        "why, and where the slots went."
    ),
    minutes={90: 6},
    sliders={"step": N_("Step")},
)
