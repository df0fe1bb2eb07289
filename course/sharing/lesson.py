"""The record of lesson "Share matching prefixes"."""

from __future__ import annotations

from course.lesson import Lesson
from engine.i18n import N_, _


def _summary() -> str:
    from course.sharing.scene import two_answers
    from engine.trace.usage import usage_of

    scene = two_answers()
    return _(
        "Block tables can point to the same block, so a common prefix is stored once. Two answers "
        "share {usage.num_shared_blocks} blocks: {usage.num_copies_avoided} copies avoided. Before a "
        "request writes into a shared block, it gets a private copy."
    ).format(usage=usage_of(scene.at(scene.values[-1])))


LESSON = Lesson(
    order=60,
    key="sharing",
    title=N_("Share matching prefixes"),
    short_name=N_("Sharing"),
    section="learn",
    icon=":material/call_split:",
    url_path="sharing",
    promise=N_("A common prefix is stored once; a block is copied only when a request must write into it."),
    minutes={45: 9, 90: 11},
    sliders={"step": N_("Step"), "after": N_("After"), "moment": N_("Moment"), "frame": N_("Frame")},
    explains=N_("How requests share blocks, and when a block is copied"),
    summary=_summary,
)
