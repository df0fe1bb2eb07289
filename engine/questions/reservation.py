"""Questions of "Reserved space can go unused"."""

from __future__ import annotations

from random import Random

from engine.questions.question import Draft, Misconception, Wrong
from engine.questions.wording import how_many
from engine.said import said
from engine.scenes.reservation import reservation_of_length
from engine.waste import waste


def empty_slots(random: Random) -> Draft:
    num_reserved, num_used = _draw(random)
    scene = reservation_of_length(num_reserved, num_used)
    counted = waste(scene.at(num_used))
    return Draft(
        kind="empty slots",
        prompt=said(
            "A request reserves {num_reserved:slot} in one run.\n"
            "It ends after {num_used:token}.\n"
            "How many of its slots did nobody use?",
            num_reserved=num_reserved,
            num_used=num_used,
        ),
        right=how_many(counted.num_empty, "slot"),
        because="They were set aside for this request alone, from its start to its end.",
        wrong=(
            Wrong(
                how_many(0, "slot"),
                "A reservation keeps all others out, so its empty slots helped nobody.",
                Misconception.RESERVED_CAN_BE_LENT,
            ),
            Wrong(how_many(counted.token_states, "slot"), "These are the slots it did use.", Misconception.MIXED_UP),
            Wrong(
                how_many(counted.num_held, "slot"),
                "This is the whole reservation, the used slots too.",
                Misconception.MIXED_UP,
            ),
        ),
        controls={"num_reserved": num_reserved, "tokens": num_used},
        scene=scene,
        value=num_used,
    )


def share_of_the_reservation(random: Random) -> Draft:
    num_reserved, num_used = _draw(random)
    scene = reservation_of_length(num_reserved, num_used)
    counted = waste(scene.at(num_used))
    return Draft(
        kind="share of the reservation",
        prompt=said(
            "A request reserves {num_reserved:slot} in one run.\n"
            "It ends after {num_used:token}.\n"
            "What share of its reservation was never used?",
            num_reserved=num_reserved,
            num_used=num_used,
        ),
        right=said("{percent:.0f} %", percent=counted.percent_empty),
        because=said("{counted.num_empty} of {counted.num_held:slot}.", counted=counted),
        wrong=(
            Wrong(
                said("{percent} %", percent=100 - round(counted.percent_empty)),
                "This is the share that was used.",
                Misconception.MIXED_UP,
            ),
            Wrong(
                "0 %",
                "A reservation keeps all others out, so its empty slots helped nobody.",
                Misconception.RESERVED_CAN_BE_LENT,
            ),
            Wrong(
                "100 %",
                "The slots that hold tokens were used.",
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
