"""The record of lesson "Memory across a batch"."""

from __future__ import annotations

from course.lesson import Lesson
from engine.i18n import N_, _
from engine.trace.event_base import percentage


def _summary() -> str:
    from course.batch.scene import batch
    from engine.baselines.fragmentation import percent_fewer_held, waste

    both = batch()
    contiguous, paged = both.contiguous.at(5), both.paged.at(5)
    return _(
        "Five requests with {paged.token_states} tokens in all hold {contiguous.num_held} slots in "
        "contiguous reservations and {paged.num_held} in blocks: {fewer} fewer. Nothing is "
        "compressed, and attention computes the same result."
    ).format(
        contiguous=waste(contiguous), paged=waste(paged), fewer=f"{percentage(percent_fewer_held(paged, contiguous))} %"
    )


LESSON = Lesson(
    order=70,
    key="batch",
    title=N_("Memory across a batch"),
    short_name=N_("Batch"),
    section="learn",
    icon=":material/stacks:",
    url_path="batch",
    promise=N_("Many requests in both layouts: what paging saves and what it costs."),
    minutes={90: 6},
    sliders={"requests": N_("Requests"), "running": N_("Running")},
    explains=N_("How paging lets more requests run at once, and what it costs"),
    summary=_summary,
)
