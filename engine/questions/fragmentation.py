"""Questions of "Waste between reservations"."""

from __future__ import annotations

from random import Random

from engine.events import RequestRefused
from engine.questions.question import Draft, Misconception, Wrong
from engine.questions.wording import how_many, listed
from engine.said import said
from engine.scenes.actions import Action, Add, Finish, format_actions
from engine.scenes.fragmentation import BLOCK_SIZE, in_runs, on_pages
from engine.scenes.scene import Scene
from engine.waste import longest_free_run, waste

BETWEEN = 4
"""Slots of each request that stays between two gaps."""
SHORT_NAMES = {"first_fit": said("first fit"), "best_fit": said("best fit")}


def can_it_start(random: Random) -> Draft:
    gaps, num_needed = _gaps(random), 0
    while num_needed <= max(gaps):
        num_needed = 2 * random.randint(max(gaps) // 2, sum(gaps) // 2)
    actions = _actions(gaps, num_needed)
    scene = in_runs(actions, num_slots=_memory(gaps))
    before = scene.at(len(actions) - 1)
    free, longest = waste(before).free, longest_free_run(before)
    refused = _is_refused(scene, len(actions))
    return Draft(
        kind="can it start",
        prompt=said(
            "Between running requests there are free gaps of {gaps} slots.\n"
            "A new request needs {num_needed} slots in a row.\n"
            "Can it start now?",
            gaps=listed(gaps),
            num_needed=num_needed,
        ),
        right=said("No: the longest gap has {longest} slots", longest=longest)
        if refused
        else said("Yes: a gap of {longest} slots is enough", longest=longest),
        because=said(
            "{free:slot} are free, and no {num_needed} of them are neighbours.", free=free, num_needed=num_needed
        ),
        wrong=(
            Wrong(
                said("Yes: {free} slots are free", free=free),
                "They are free, and in three pieces; the request needs one piece.",
                Misconception.FREE_IS_FREE,
            ),
            Wrong(
                "Yes: the running requests move together first",
                "Running requests stay where they are: moving their keys and values takes time, and attention expects "
                "them where they were.",
                Misconception.COMPACTION,
            ),
            Wrong(
                said("No: only {fewer} slots are free", fewer=free - longest),
                said(
                    "{free} slots are free; what is missing is a run of {num_needed}.", free=free, num_needed=num_needed
                ),
                Misconception.MIXED_UP,
            ),
        ),
        controls={"actions": format_actions(actions), "num_slots": _memory(gaps)},
        scene=scene,
        value=len(actions),
    )


def can_it_start_on_pages(random: Random) -> Draft:
    gaps = _gaps(random)
    num_needed = 2 * random.randint(max(gaps) // 2 + 1, sum(gaps) // 2)
    actions = _actions(gaps, num_needed)
    scene = on_pages(actions, _memory(gaps) // BLOCK_SIZE, BLOCK_SIZE)
    before, after = scene.at(len(actions) - 1), scene.at(len(actions))
    free, taken = len(before.free_block_queue), len(before.free_block_queue) - len(after.free_block_queue)
    started = not _is_refused(scene, len(actions))
    return Draft(
        kind="can it start on pages",
        prompt=said(
            "Memory is cut into blocks of {block_size} slots.\n"
            "{free} blocks are free, in gaps of {gaps}.\n"
            "A new request has {num_needed} tokens.\n"
            "Can it start now?",
            block_size=BLOCK_SIZE,
            free=free,
            gaps=listed([gap // BLOCK_SIZE for gap in gaps]),
            num_needed=num_needed,
        ),
        right=said("Yes: it takes any {taken} free blocks", taken=taken) if started else "No: too few blocks are free",
        because="Any free block will do: the block table says where each one is.",
        wrong=(
            Wrong(
                said("No: no {taken} free blocks lie side by side", taken=taken),
                "Blocks need not be neighbours: the table leads to each of them.",
                Misconception.MUST_BE_ADJACENT,
            ),
            Wrong(
                "Yes, after the running requests have moved together",
                "Nothing needs to move: any free block will do.",
                Misconception.COMPACTION,
            ),
            Wrong(
                said("Yes: paging packs it into {half} blocks", half=-(-taken // 2)),
                "Paging makes nothing smaller: each token still takes a slot.",
                Misconception.COMPRESSES,
            ),
        ),
        controls={"actions": format_actions(actions), "num_slots": _memory(gaps), "block_size": BLOCK_SIZE},
        scene=scene,
        value=len(actions),
    )


def longest_gap_left(random: Random) -> Draft:
    gaps = _gaps(random)
    shortest_in_the_middle = [max(gaps), min(gaps), sum(gaps) - max(gaps) - min(gaps)]
    num_needed = random.randint(1, min(gaps) - 1)
    actions = _actions(shortest_in_the_middle, num_needed)
    names = {
        "first_fit": said("first fit (the first gap that is long enough)"),
        "best_fit": said("best fit (the shortest such gap)"),
    }
    asked, other = random.sample(list(names), 2)
    scene = in_runs(actions, asked, _memory(gaps))
    left = {a: longest_free_run(in_runs(actions, a, _memory(gaps)).at(len(actions))) for a in names}
    free = waste(scene.at(len(actions))).free
    return Draft(
        kind="longest gap left",
        prompt=said(
            "Free gaps of {gaps} slots, in this order.\n"
            "A request of {num_needed:slot} starts, by {rule}.\n"
            "How long is the longest gap that is left?",
            gaps=listed(shortest_in_the_middle),
            num_needed=num_needed,
            rule=names[asked],
        ),
        right=how_many(left[asked], "slot"),
        because="The request is cut from one gap, and the others stay as they are.",
        wrong=(
            Wrong(
                how_many(left[other], "slot"),
                said("This is what {rule} would leave.", rule=SHORT_NAMES[other]),
                Misconception.FITS_ARE_ALIKE,
            ),
            Wrong(how_many(free, "slot"), "This adds up all gaps, which do not touch.", Misconception.FREE_IS_FREE),
            Wrong(
                how_many(free + num_needed, "slot"),
                "This adds up all gaps as they were before the request.",
                Misconception.FREE_IS_FREE,
            ),
        ),
        controls={"actions": format_actions(actions), "num_slots": _memory(gaps), "allocator": asked},
        scene=scene,
        value=len(actions),
    )


def _gaps(random: Random) -> list[int]:
    """Three different even lengths."""
    return [2 * half for half in random.sample(range(2, 8), 3)]


def _actions(gaps: list[int], num_needed: int) -> tuple[Action, ...]:
    """Memory fills, the requests in the gaps end, one more comes."""
    first, second, third = gaps
    fill = (Add("A", first), Add("B", BETWEEN), Add("C", second), Add("D", BETWEEN), Add("E", third))
    return (*fill, Finish("A"), Finish("C"), Finish("E"), Add("F", num_needed))


def _memory(gaps: list[int]) -> int:
    return sum(gaps) + 2 * BETWEEN


def _is_refused(scene: Scene, value: int) -> bool:
    return any(isinstance(event, RequestRefused) for event in scene.trace.events_of(scene.frame_of[value]))


KINDS = (can_it_start, can_it_start_on_pages, longest_gap_left)
