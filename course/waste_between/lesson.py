"""The record of lesson "Waste between reservations"."""

from __future__ import annotations

from course.lesson import Lesson
from engine.i18n import N_, _


def _summary() -> str:
    from course.waste_between.scene import fragmentation
    from engine.baselines.fragmentation import free_extents, longest_free_extent, waste

    scene = fragmentation().contiguous
    before, refused = scene.at(scene.values[-2]), scene.at(scene.values[-1]).requests["F"]
    return _(
        "A reservation must be contiguous. Gaps of {gaps[0].num_slots}, {gaps[1].num_slots} and "
        "{gaps[2].num_slots} slots make {free} free, but the longest is {longest}. The next request "
        "is refused: {refused.reason}."
    ).format(gaps=free_extents(before), free=waste(before).free, longest=longest_free_extent(before), refused=refused)


LESSON = Lesson(
    order=30,
    key="fragmentation",
    title=N_("Waste between reservations"),
    short_name=N_("Gaps"),
    section="learn",
    icon=":material/view_column:",
    url_path="waste_between",
    promise=N_("Enough slots are free, yet a request is refused: the free slots are not contiguous."),
    minutes={45: 6, 90: 7},
    sliders={"done": N_("Done")},
    explains=N_("Why a request is refused although enough memory is free"),
    summary=_summary,
)
