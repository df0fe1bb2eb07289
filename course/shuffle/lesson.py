"""The record of experiment "Shuffle memory, same words"."""

from __future__ import annotations

from course.lesson import Lesson
from engine.i18n import N_

LESSON = Lesson(
    order=110,
    key="shuffle",
    title=N_("Shuffle memory, same words"),
    short_name=N_("Shuffle"),
    section="lab",
    icon=":material/shuffle:",
    url_path="shuffle",
    promise=N_(
        "Move every block of a running engine. If the block tables are updated, the reply stays the "
        "same; if not, it goes wrong."
    ),
    minutes={90: 4},
    sliders={"moment": N_("Moment")},
)
