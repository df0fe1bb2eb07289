"""Questions of "Waste between reservations"."""

from __future__ import annotations

from random import Random

from course.misconceptions import Misconception
from course.question import Draft, Wrong, listed
from course.scene import Scene
from course.waste_between.actions import Action, Add, Finish, format_actions
from course.waste_between.scene import BLOCK_SIZE, in_runs, on_pages
from engine.baselines.fragmentation import longest_free_extent, waste
from engine.i18n import N_, _, counted, slots_counted
from engine.trace.events import RequestRefused

BETWEEN = 4
"""Slots of each request that stays between two gaps."""
SHORT_NAMES = {"first_fit": N_("first fit"), "best_fit": N_("best fit")}


def can_it_start(random: Random) -> Draft:
    """Whether a request fits into fragmented contiguous memory."""
    gaps, num_needed = _gaps(random), 0
    while num_needed <= max(gaps):
        num_needed = 2 * random.randint(max(gaps) // 2, sum(gaps) // 2)
    actions = _actions(gaps, num_needed)
    scene = in_runs(actions, num_slots=_memory(gaps))
    before = scene.at(len(actions) - 1)
    free, longest = waste(before).free, longest_free_extent(before)
    refused = _is_refused(scene, len(actions))
    return Draft(
        prompt=_(
            "Between running requests there are free gaps of {gaps} slots.\n"
            "A new request needs {num_needed} contiguous slots.\n"
            "Can it start now?"
        ).format(gaps=listed(gaps), num_needed=num_needed),
        right=_("No: the longest gap has {longest} slots").format(longest=longest)
        if refused
        else _("Yes: a gap of {longest} slots is enough").format(longest=longest),
        because=counted(
            "{n} slot is free, but {num_needed} contiguous slots are needed.",
            "{n} slots are free, but no {num_needed} of them are contiguous.",
            free,
            num_needed=num_needed,
        ),
        wrong=(
            Wrong(
                _("Yes: {free} slots are free").format(free=free),
                _("They are free, but in three separate gaps; the request needs one contiguous region."),
                Misconception.FREE_IS_FREE,
            ),
            Wrong(
                _("Yes: the running requests are moved together first"),
                _(
                    "Running requests stay where they are: copying their keys and values takes time, and "
                    "attention reads them at fixed addresses."
                ),
                Misconception.COMPACTION,
            ),
            Wrong(
                _("No: only {fewer} slots are free").format(fewer=free - longest),
                _("{free} slots are free, but there is no contiguous region of {num_needed}.").format(
                    free=free, num_needed=num_needed
                ),
                Misconception.MIXED_UP,
            ),
        ),
        controls={"actions": format_actions(actions), "num_slots": _memory(gaps)},
        scene=scene,
        value=len(actions),
    )


def can_it_start_on_pages(random: Random) -> Draft:
    """Whether the same request fits into a pool of blocks."""
    gaps = _gaps(random)
    num_needed = 2 * random.randint(max(gaps) // 2 + 1, sum(gaps) // 2)
    actions = _actions(gaps, num_needed)
    scene = on_pages(actions, _memory(gaps) // BLOCK_SIZE, BLOCK_SIZE)
    before, after = scene.at(len(actions) - 1), scene.at(len(actions))
    free, taken = len(before.free_block_queue), len(before.free_block_queue) - len(after.free_block_queue)
    started = not _is_refused(scene, len(actions))
    return Draft(
        prompt=_(
            "Memory is divided into blocks of {block_size} slots.\n"
            "{free} blocks are free, in gaps of {gaps} blocks.\n"
            "A new request has {num_needed} tokens.\n"
            "Can it start now?"
        ).format(
            block_size=BLOCK_SIZE, free=free, gaps=listed([gap // BLOCK_SIZE for gap in gaps]), num_needed=num_needed
        ),
        right=_("Yes: it takes any {taken} free blocks").format(taken=taken)
        if started
        else _("No: too few blocks are free"),
        because=_("Any free block can be used: the block table says where each one is."),
        wrong=(
            Wrong(
                _("No: no {taken} free blocks are adjacent").format(taken=taken),
                _("Blocks need not be adjacent: the block table points to each of them."),
                Misconception.MUST_BE_ADJACENT,
            ),
            Wrong(
                _("Yes, after the running requests are moved together"),
                _("Nothing needs to move: any free block can be used."),
                Misconception.COMPACTION,
            ),
            Wrong(
                _("Yes: paging compresses it into {half} blocks").format(half=-(-taken // 2)),
                _("Paging does not compress anything: each token still takes one slot."),
                Misconception.COMPRESSES,
            ),
        ),
        controls={"actions": format_actions(actions), "num_slots": _memory(gaps), "block_size": BLOCK_SIZE},
        scene=scene,
        value=len(actions),
    )


def longest_gap_left(random: Random) -> Draft:
    """The longest free extent after a request took its place."""
    gaps = _gaps(random)
    shortest_in_the_middle = [max(gaps), min(gaps), sum(gaps) - max(gaps) - min(gaps)]
    num_needed = random.randint(1, min(gaps) - 1)
    actions = _actions(shortest_in_the_middle, num_needed)
    names = {
        "first_fit": _("first fit (the first gap that is long enough)"),
        "best_fit": _("best fit (the shortest gap that is long enough)"),
    }
    asked, other = random.sample(list(names), 2)
    scene = in_runs(actions, asked, _memory(gaps))
    left = {a: longest_free_extent(in_runs(actions, a, _memory(gaps)).at(len(actions))) for a in names}
    free = waste(scene.at(len(actions))).free
    return Draft(
        prompt=counted(
            "There are free gaps of {gaps} slots, in this order.\n"
            "A request of {n} slot is placed by {rule}.\n"
            "How long is the longest gap that remains?",
            "There are free gaps of {gaps} slots, in this order.\n"
            "A request of {n} slots is placed by {rule}.\n"
            "How long is the longest gap that remains?",
            num_needed,
            gaps=listed(shortest_in_the_middle),
            rule=names[asked],
        ),
        right=slots_counted(left[asked]),
        because=_("The request takes its slots from one gap, and the others stay as they are."),
        wrong=(
            Wrong(
                slots_counted(left[other]),
                _("This is what {rule} would leave.").format(rule=_(SHORT_NAMES[other])),
                Misconception.FITS_ARE_ALIKE,
            ),
            Wrong(
                slots_counted(free),
                _("This adds up all gaps, but they are not adjacent."),
                Misconception.FREE_IS_FREE,
            ),
            Wrong(
                slots_counted(free + num_needed),
                _("This adds up all gaps as they were before the request."),
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
