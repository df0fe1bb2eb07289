"""The record of experiment "Preemption, live"."""

from __future__ import annotations

from course.lesson import Lesson
from engine.i18n import N_

LESSON = Lesson(
    order=150,
    key="preemption",
    title=N_("Preemption, live"),
    short_name=N_("Preemption"),
    section="lab",
    icon=":material/pause_circle:",
    url_path="preemption",
    promise=N_("Shrink the pool until a request is preempted, then compare two ways to resume it: recompute, or swap."),
    minutes={90: 3},
    sliders={"step": N_("Step")},
)
