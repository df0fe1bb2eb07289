"""The record of lesson "Reserved space can go unused"."""

from __future__ import annotations

from course.lesson import Lesson
from engine.i18n import N_, _
from engine.trace.event_base import percentage


def _summary() -> str:
    from course.reserved_space.scene import reservation, reservation_of_length
    from course.words import passage
    from engine.baselines.fragmentation import waste

    return _(
        "Nobody knows how long a reply will be. If memory is reserved for the longest one, the rest "
        "stays empty: {short.token_states} of {short.num_held} slots used leave {short.num_empty} "
        "empty ({percent_empty}); {long.token_states} of {long.num_held:,} leave {long.num_empty:,}."
    ).format(
        short=waste(reservation_of_length(16, 7).at(7)),
        long=waste(reservation(2048, passage(60)).at(60)),
        percent_empty=f"{percentage(waste(reservation_of_length(16, 7).at(7)).percent_empty)} %",
    )


LESSON = Lesson(
    order=20,
    key="reservation",
    title=N_("Reserved space can go unused"),
    short_name=N_("Unused reservations"),
    section="learn",
    icon=":material/event_seat:",
    url_path="reserved_space",
    promise=N_("Nobody knows how long a reply will be, so a reservation keeps slots that no token ever uses."),
    minutes={15: 4, 45: 6, 90: 6},
    sliders={"tokens": N_("Tokens")},
    explains=N_("Why memory that is reserved for the longest reply stays empty"),
    summary=_summary,
)
