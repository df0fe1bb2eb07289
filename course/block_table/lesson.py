"""The record of lesson "Keep pages in order"."""

from __future__ import annotations

from course.lesson import Lesson
from engine.i18n import N_, _


def _summary() -> str:
    from course.block_table.scene import block_table
    from engine.trace.usage import block_table_of

    scene = block_table()
    frame = scene.at(scene.values[-1])
    rows = ", ".join(f"{entry.logical_index} → {entry.block_id}" for entry in block_table_of(frame, "A"))
    return _("Blocks can be anywhere in memory. A block table keeps their order: {rows}, in a pool of "
"{frame.num_blocks} blocks.").format(rows=rows, frame=frame)  # fmt: skip


LESSON = Lesson(
    order=50,
    key="block_table",
    title=N_("Keep pages in order"),
    short_name=N_("Block table"),
    section="learn",
    icon=":material/format_list_numbered:",
    url_path="block_table",
    promise=N_(
        "A request's blocks can be anywhere; its block table keeps them in order. Follow one token to its slot."
    ),
    minutes={15: 3, 45: 7, 90: 8},
    sliders={"step": N_("Step")},
    explains=N_("How a block table finds the slot of any token"),
    summary=_summary,
)
