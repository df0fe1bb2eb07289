"""Questions of "Race for memory"."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from course.messages import Plural, Text, fill
from course.misconceptions import Misconception
from course.question import Draft, Wrong
from course.race.experiment import Lane
from course.race.experiment import race as run_race
from engine.baselines.arrivals import Arrival
from engine.i18n import N_, _, counted

BLOCK_SIZE, NUM_SLOTS, LONGEST, NUM_REQUESTS = 4, 64, 32, 7
RULES: dict[str, Text] = {
    "Max": Plural(
        "longest",
        "Each request reserves room for the longest request allowed, {n} slot.",
        "Each request reserves room for the longest request allowed, {n} slots.",
    ),
    "Pow2": N_(
        "Each reserves its prompt plus its reply rounded up to a power of two; a buddy allocator "
        "rounds the sum up again."
    ),
    "Oracle": N_(
        "Each reserves exactly its prompt plus its reply; a buddy allocator rounds the sum up to a power of two."
    ),
    "Paged": N_("Each gets blocks of {block_size} slots for the tokens that it has so far."),
}
WHY = {
    "Max": N_("Every request holds as much as the longest one allowed."),
    "Pow2": N_("Every request holds room for a reply that was rounded up, in a region that is rounded up again."),
    "Oracle": N_("Every request holds room for its whole reply from the first step, rounded up."),
    "Paged": N_("A request holds room for what it has so far, rounded up to whole blocks."),
}


def running_at_once(random: Random) -> Draft:
    """How many requests run at once in each memory."""
    lanes: dict[str, Lane] = {}
    while len(set(_running(lanes).values())) < 3:
        arrivals = _arrivals(random)
        lanes = {lane.name: lane for lane in run_race(arrivals, NUM_SLOTS, BLOCK_SIZE, LONGEST)}
    counts = _running(lanes)
    asked = random.choice(list(lanes))
    rule = fill(RULES[asked], {"longest": LONGEST, "block_size": BLOCK_SIZE})
    return Draft(
        prompt=_(
            "Memory has {num_slots} slots. Requests arrive together, with prompt + reply tokens of:\n"
            "{lengths}.\n"
            "{rule}\n"
            "First come, first served: how many run in the first step?"
        ).format(num_slots=NUM_SLOTS, lengths=_in_words(arrivals), rule=rule),
        right=counted("{n} request", "{n} requests", counts[asked]),
        because=_(WHY[asked]),
        wrong=(
            *(
                Wrong(
                    counted("{n} request", "{n} requests", count),
                    _("This is the number with {name}: {why}").format(name=name, why=_lowered(_(WHY[name]))),
                    _HOLDS[name],
                )
                for name, count in counts.items()
                if name != asked
            ),
            Wrong(
                counted("{n} request", "{n} requests", NUM_REQUESTS),
                _(
                    "Together they need more memory than there is. A request that does not fit waits, and so do "
                    "all after it."
                ),
                Misconception.FREE_IS_FREE,
            ),
        ),
        controls={"rule": asked, "lengths": _in_words(arrivals)},
    )


_HOLDS = {
    "Max": Misconception.AS_RESERVED,
    "Pow2": Misconception.AS_RESERVED,
    "Oracle": Misconception.RESERVED_CAN_BE_LENT,
    "Paged": Misconception.RESERVED_CAN_BE_LENT,
}


def _arrivals(random: Random) -> list[Arrival]:
    return [
        Arrival.from_lengths(name, random.randint(4, 12), random.randint(3, 14)) for name in "ABCDEFG"[:NUM_REQUESTS]
    ]


def _running(lanes: dict[str, Lane]) -> dict[str, int]:
    return {name: lane.num_running[1] for name, lane in lanes.items()}


def _in_words(arrivals: Sequence[Arrival]) -> str:
    """`8 + 13, 11 + 3`, with non-breaking spaces."""
    return ", ".join(f"{arrival.num_prompt_tokens}\u00a0+\u00a0{arrival.num_output_tokens}" for arrival in arrivals)


def _lowered(sentence: str) -> str:
    return sentence[0].lower() + sentence[1:]


KINDS = (running_at_once,)
