"""Questions of "Race for memory"."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from engine.arrivals import Arrival
from engine.lab.race import Lane
from engine.lab.race import race as run_race
from engine.questions.question import Draft, Misconception, Wrong
from engine.questions.wording import how_many
from engine.said import said

BLOCK_SIZE, NUM_SLOTS, LONGEST, NUM_REQUESTS = 4, 64, 32, 7
RULES = {
    "Max": "Each reserves room for the longest request allowed, {longest:slot}.",
    "Pow2": "Each reserves its prompt and its reply rounded up to a power of two; then so is the whole run (buddy).",
    "Oracle": "Each reserves exactly its prompt and its reply; the run is rounded up to a power of two (buddy).",
    "Paged": "Each takes blocks of {block_size} slots for the tokens that it has.",
}
WHY = {
    "Max": "Every request holds as much as the longest one would.",
    "Pow2": "Every request holds room for a reply that was rounded up, in a run that is rounded up once more.",
    "Oracle": "Every request holds room for its whole reply from the first step on, rounded up.",
    "Paged": "A request holds room for what it has so far, rounded up to whole blocks.",
}


def running_at_once(random: Random) -> Draft:
    lanes: dict[str, Lane] = {}
    while len(set(_running(lanes).values())) < 3:
        arrivals = _arrivals(random)
        lanes = {lane.name: lane for lane in run_race(arrivals, NUM_SLOTS, BLOCK_SIZE, LONGEST)}
    counts = _running(lanes)
    asked = random.choice(list(lanes))
    return Draft(
        kind="running at once",
        prompt=said(
            "A memory of {num_slots} slots. Requests come together, with prompt + reply tokens of:\n"
            "{lengths}.\n"
            f"{RULES[asked]}\n"
            "First come, first served: how many run in the first step?",
            num_slots=NUM_SLOTS,
            lengths=_in_words(arrivals),
            longest=LONGEST,
            block_size=BLOCK_SIZE,
        ),
        right=how_many(counts[asked], "request"),
        because=WHY[asked],
        wrong=(
            *(
                Wrong(how_many(count, "request"), f"So many run with {name}: {_lowered(WHY[name])}", _HOLDS[name])
                for name, count in counts.items()
                if name != asked
            ),
            Wrong(
                how_many(NUM_REQUESTS, "request"),
                "They need more than there is; whoever finds no room waits, and all behind it do.",
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
    """`8 + 13, 11 + 3`, with blanks at which no line breaks."""
    return ", ".join(f"{arrival.num_prompt_tokens}\u00a0+\u00a0{arrival.num_output_tokens}" for arrival in arrivals)


def _lowered(sentence: str) -> str:
    return sentence[0].lower() + sentence[1:]


KINDS = (running_at_once,)
