"""Questions of "Reserved space can go unused"."""

from __future__ import annotations

from random import Random

from course.misconceptions import Misconception
from course.question import Draft, Wrong
from course.reserved_space.scene import reservation_of_length
from engine.baselines.fragmentation import waste
from engine.i18n import _, counted, slots_counted, tokens_counted
from engine.trace.event_base import percentage


def empty_slots(random: Random) -> Draft:
    """How many reserved slots the reply leaves empty."""
    num_reserved, num_used = _draw(random)
    scene = reservation_of_length(num_reserved, num_used)
    held = waste(scene.at(num_used))
    return Draft(
        prompt=_(
            "A request reserves {num_reserved} as one contiguous region.\n"
            "It ends after {num_used}.\n"
            "How many of its slots were never used?"
        ).format(
            num_reserved=slots_counted(num_reserved),
            num_used=tokens_counted(num_used),
        ),
        right=slots_counted(held.num_empty),
        because=_("They were reserved for this request from its start to its end."),
        wrong=(
            Wrong(
                slots_counted(0),
                _("No other request can use reserved slots, so the empty ones were wasted."),
                Misconception.RESERVED_CAN_BE_LENT,
            ),
            Wrong(
                slots_counted(held.token_states),
                _("These are the slots that were used."),
                Misconception.MIXED_UP,
            ),
            Wrong(
                slots_counted(held.num_held),
                _("This is the whole reservation, including the used slots."),
                Misconception.MIXED_UP,
            ),
        ),
        controls={"num_reserved": num_reserved, "tokens": num_used},
        scene=scene,
        value=num_used,
    )


def share_of_the_reservation(random: Random) -> Draft:
    """Which share of the reservation stays empty."""
    num_reserved, num_used = _draw(random)
    scene = reservation_of_length(num_reserved, num_used)
    held = waste(scene.at(num_used))
    return Draft(
        prompt=_(
            "A request reserves {num_reserved} as one contiguous region.\n"
            "It ends after {num_used}.\n"
            "What percentage of its reservation was never used?"
        ).format(
            num_reserved=slots_counted(num_reserved),
            num_used=tokens_counted(num_used),
        ),
        right="{percent}".format(percent=f"{percentage(held.percent_empty)} %"),
        because=counted("{held.num_empty} of {n} slot.", "{held.num_empty} of {n} slots.", held.num_held, held=held),
        wrong=(
            Wrong(
                "{percent}".format(percent=f"{percentage(100 - held.percent_empty)} %"),
                _("This is the percentage that was used."),
                Misconception.MIXED_UP,
            ),
            Wrong(
                "0 %",
                _("No other request can use reserved slots, so the empty ones were wasted."),
                Misconception.RESERVED_CAN_BE_LENT,
            ),
            Wrong(
                "100 %",
                _("The slots that hold tokens were used."),
                Misconception.MIXED_UP,
            ),
        ),
        controls={"num_reserved": num_reserved, "tokens": num_used},
        scene=scene,
        value=num_used,
    )


def _draw(random: Random) -> tuple[int, int]:
    """A reservation and a shorter reply that is not just half of it."""
    num_reserved = random.choice((12, 16, 20, 24, 32, 40, 48, 64))
    num_used = random.randint(3, num_reserved - 3)
    return num_reserved, num_used if 2 * num_used != num_reserved else num_used + 1


KINDS = (empty_slots, share_of_the_reservation)
