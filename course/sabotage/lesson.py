"""The record of experiment "Sabotage"."""

from __future__ import annotations

from course.lesson import Lesson
from engine.i18n import N_

LESSON = Lesson(
    order=120,
    key="sabotage",
    title=N_("Sabotage"),
    short_name=N_("Sabotage"),
    section="lab",
    icon=":material/bug_report:",
    url_path="sabotage",
    promise=N_("Inject a fault into the engine, see which reads go wrong, and which invariant detects it."),
    minutes={90: 5},
    sliders={"step": N_("Step")},
)
