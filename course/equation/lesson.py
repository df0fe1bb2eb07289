"""The record of experiment "The equation is unchanged"."""

from __future__ import annotations

from course.lesson import Lesson
from engine.i18n import N_

LESSON = Lesson(
    order=100,
    key="equation",
    title=N_("The equation is unchanged"),
    short_name=N_("Equation"),
    section="lab",
    icon=":material/functions:",
    url_path="equation",
    promise=N_(
        "Run your prompts with contiguous and with paged memory, side by side: same tokens, same logits up to rounding."
    ),
    minutes={90: 4},
    sliders={"step": N_("Step")},
)
