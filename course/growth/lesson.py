"""The record of lesson "Add pages as the request grows"."""

from __future__ import annotations

from course.lesson import Lesson
from engine.i18n import N_, _


def _summary() -> str:
    from course.growth.scene import growth
    from course.reserved_space.scene import reservation
    from course.words import EXAMPLE_REPLY, passage
    from engine.baselines.fragmentation import waste
    from engine.trace.usage import usage_of

    num_words = len(EXAMPLE_REPLY)
    return _(
        "Paging allocates small blocks instead, each when a token needs it. "
        "{eleven.num_tokens_written} tokens take {eleven.num_used_blocks} blocks of "
        "{eleven.block_size} and leave {eleven.num_empty_slots} slot empty. A reply of "
        "{reply.num_tokens_written} leaves {reserved.num_empty} of {reserved.num_held} reserved slots "
        "empty, but only {reply.num_empty_slots} of {reply.num_held_slots} in blocks."
    ).format(
        eleven=usage_of(growth(passage(11), 4).at(11)),
        reply=usage_of(growth(EXAMPLE_REPLY, 5).at(num_words)),
        reserved=waste(reservation(32, EXAMPLE_REPLY).at(num_words)),
    )


LESSON = Lesson(
    order=40,
    key="growth",
    title=N_("Add pages as the request grows"),
    short_name=N_("Pages"),
    section="learn",
    icon=":material/note_add:",
    url_path="growth",
    promise=N_("Small blocks of equal size, allocated one at a time, when a token needs a slot."),
    minutes={15: 4, 45: 7, 90: 8},
    sliders={"tokens": N_("Tokens")},
    explains=N_("How blocks taken one at a time leave at most block_size - 1 slots empty"),
    summary=_summary,
)
