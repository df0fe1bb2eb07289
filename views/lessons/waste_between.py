"""Lesson "Waste between reservations": the reader's own arrivals, in runs of slots and on pages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd

from course.messages import Message, Plural
from course.scene import Scene
from course.waste_between.actions import MAX_ACTIONS, Action, Add, Finish, format_actions, next_name, parse_actions
from course.waste_between.lesson import LESSON
from course.waste_between.scene import (
    BLOCK_SIZE,
    CHAT,
    CHAT_SLOTS,
    CHAT_WORDS,
    GAPS,
    NO_WORDS,
    NUM_SLOTS,
    Fragmentation,
    fragmentation,
)
from engine.baselines.contiguous import ALLOCATORS
from engine.baselines.fragmentation import longest_free_extent, waste
from engine.i18n import N_, _, blocks_counted, counted, slots_counted
from engine.trace.events import RequestRefused
from engine.trace.state import CacheState
from views.figures import Figure
from views.lesson_picture import FrameTexts, Picture, picture, renamed
from views.memory_map.frames import say_instead
from views.server.memoize import memoize
from views.url_values import ChoiceRule, NumberRule

KEY = LESSON.key
DONE = "done"
NAMES_OF_ALLOCATORS = {"first_fit": N_("first fit"), "best_fit": N_("best fit"), "buddy": N_("buddy")}
ALLOCATOR = ChoiceRule("allocator", N_("Allocator"), tuple(ALLOCATORS))
LARGEST_BLOCK = 8
PAGE_SIZE = NumberRule("block_size", N_("Block size"), 1, LARGEST_BLOCK, BLOCK_SIZE)
LENGTH = NumberRule("length", N_("Tokens of the next request"), 1, NUM_SLOTS, 6)
GAPS_TEXT, CHAT_TEXT = format_actions(GAPS), format_actions(CHAT)
NUMBERED, CHATTING = N_("any requests"), N_("three chat requests")
REQUESTS = ChoiceRule("requests", N_("Requests"), (NUMBERED, CHATTING))
SLOTS = {NUMBERED: NUM_SLOTS, CHATTING: CHAT_SLOTS}

EXAMPLES: dict[str, dict[str, int | str]] = {
    N_("Gaps of 8, 6 and 10"): {"do": GAPS_TEXT, "done": len(GAPS), "allocator": "first_fit", "requests": NUMBERED},
    N_("Best fit keeps a gap"): {
        "do": "A8 B4 C6 D14 -A -C E5 F8",
        "done": 8,
        "allocator": "best_fit",
        "requests": NUMBERED,
    },
    N_("Buddy rounds up"): {"do": "A5 B9 C3 D7", "done": 4, "allocator": "buddy", "requests": NUMBERED},
    N_("Three chat requests"): {"do": CHAT_TEXT, "done": len(CHAT), "allocator": "first_fit", "requests": CHATTING},
    N_("Empty memory"): {"do": "", "done": 0, "requests": NUMBERED},
}
ACTION, FREE, LONGEST, FREE_ON_PAGES, REFUSED = (
    N_("Actions"), N_("Slots free"), N_("Longest gap"), N_("Slots free in blocks"), N_("Refused"),
)  # fmt: skip


@dataclass(frozen=True)
class ActionsRule:
    """`?do=A8+-A` is a list of actions that can be replayed."""

    key: str = "do"

    def correct(self, raw: str) -> tuple[str, str] | None:
        """See Rule: actions that cannot be replayed become the default ones."""
        try:
            parse_actions(raw)
        except ValueError as error:
            sentence = _("The actions in the address cannot be replayed, so the prepared ones are. {error}")
            return GAPS_TEXT, sentence.format(error=str(error))
        return None


def refusals(state: CacheState) -> dict[str, Any]:
    """How many requests were refused so far, as a fact for templates."""
    refused = state.counters.num_refused
    return {"refused": refused}


def newest_holder(state: CacheState) -> str | None:
    """Who came last of those that hold blocks: its table is the one worth looking at."""
    return next((name for name, sequence in reversed(state.sequences.items()) if sequence.block_table), None)


IN_RUNS = FrameTexts(
    label=Plural("value", "{n} action", "{n} actions"),
    figures=(
        Figure(N_("Slots free"), "{waste.free}"),
        Figure(N_("Longest gap"), "{longest_run}"),
        Figure(N_("Lost to rounding"), "{waste.external_fragmentation}"),
        Figure(N_("Requests refused"), "{refused}"),
    ),
    captions=(
        Plural(
            "waste.free",
            "**Contiguous.** Free: {n} slot, and at most {longest_run} of them contiguous. A request that "
            "needs a longer region is refused.",
            "**Contiguous.** Free: {n} slots, and at most {longest_run} of them contiguous. A request that "
            "needs a longer region is refused.",
        ),
    ),
    more=refusals,
)
ON_PAGES = FrameTexts(
    label=Plural("value", "{n} action", "{n} actions"),
    figures=(
        Figure(N_("Slots free"), "{waste.free}"),
        Figure(N_("Blocks free"), "{usage.num_free_blocks}"),
        Figure(N_("Slots empty in last blocks"), "{waste.num_empty}"),
        Figure(N_("Requests refused"), "{refused}"),
    ),
    captions=(
        Message(
            N_(
                "**In blocks.** Free: {free}, in {num_free_blocks}. Any free block fits any request, so a "
                "request starts whenever enough of them are free."
            ),
            free=Plural("waste.free", "{n} slot", "{n} slots"),
            num_free_blocks=Plural("usage.num_free_blocks", "{n} block", "{n} blocks"),
        ),
        Plural(
            "waste.num_empty",
            "The cost: {n} slot is empty in the requests' last blocks.",
            "The cost: {n} slots are empty in the requests' last blocks.",
        ),
    ),
    more=refusals,
    focus=newest_holder,
)


@dataclass(frozen=True)
class ReplayedActions:
    """The same actions twice. `actions` are those that both replay."""

    actions: tuple[Action, ...]
    scenes: Fragmentation
    in_runs: Picture
    on_pages: Picture


@memoize(maxsize=64)
def both_layouts(text: str, allocator: str, block_size: int, requests: str = NUMBERED) -> ReplayedActions:
    """Value k of both pictures: memory after the first k actions."""
    actions = parse_actions(text)
    words = CHAT_WORDS if requests == CHATTING else NO_WORDS
    scenes = fragmentation(actions, allocator, SLOTS[requests], block_size, words)
    title = _("Contiguous, {allocator}").format(allocator=_(NAMES_OF_ALLOCATORS[allocator]))
    return ReplayedActions(
        actions,
        scenes,
        with_sentences(picture(scenes.contiguous, IN_RUNS, title), actions),
        with_sentences(picture(scenes.paged, ON_PAGES, _("The same arrivals in blocks")), actions),
    )


def with_sentences(replay: Picture, actions: Sequence[Action]) -> Picture:
    """The picture with one sentence a frame: what the reader did, and what memory did about it."""
    for frame, value in zip(replay.payload["frames"], replay.values, strict=True):
        say_instead(frame, [sentence_of(replay.scene, actions, value)])
    return replace(replay, payload=renamed(replay.payload))


def sentence_of(scene: Scene, actions: Sequence[Action], value: int) -> str:
    """The action that leads to `value`, in a sentence."""
    if value == 0:
        return _("Memory is empty.")
    action, state = actions[value - 1], scene.at(value)
    name = action.request_id
    if isinstance(action, Finish):
        ended = scene.frame_of[value] != scene.frame_of[value - 1]
        return (_("{name} ends, and what it held is freed.") if ended else _("{name} ends; it held nothing.")).format(
            name=name
        )
    if region := state.regions.get(action.request_id):
        return counted(
            "{name} asks for {n} contiguous slot and gets {region.num_slots}.",
            "{name} asks for {n} contiguous slots and gets {region.num_slots}.",
            action.num_tokens,
            name=name,
            region=region,
        )
    if sequence := state.sequences.get(action.request_id):
        taken = len(sequence.block_table)
        return _("{name} asks for {num_tokens} and takes {taken}.").format(
            name=name,
            num_tokens=slots_counted(action.num_tokens),
            taken=blocks_counted(taken),
        )
    refused = state.requests[action.request_id]
    return counted(
        "{name} asks for {n} slot and is refused: {refused.reason}.",
        "{name} asks for {n} slots and is refused: {refused.reason}.",
        action.num_tokens,
        name=name,
        refused=refused,
    )


def residents(both: ReplayedActions) -> list[str]:
    """Who holds memory at the end, in either layout, in order of arrival."""
    value = len(both.actions)
    holders = set(both.scenes.contiguous.at(value).regions)
    holders |= {name for name, sequence in both.scenes.paged.at(value).sequences.items() if sequence.block_table}
    return [action.request_id for action in both.actions if isinstance(action, Add) and action.request_id in holders]


def has_room_for_more(actions: Sequence[Action]) -> bool:
    """Whether another action may be added."""
    return len(actions) < MAX_ACTIONS


def with_request(actions: Sequence[Action], num_tokens: int) -> str:
    """The actions and one more request of `num_tokens` tokens, as text for the address."""
    return format_actions([*actions, Add(next_name(actions), num_tokens)])


def over_time(both: ReplayedActions) -> pd.DataFrame:
    """One row a number of actions: what is free in either layout, and who was refused by then."""
    contiguous, paged = both.scenes.contiguous, both.scenes.paged
    return pd.DataFrame(
        {
            ACTION: value,
            FREE: waste(contiguous.at(value)).free,
            LONGEST: longest_free_extent(contiguous.at(value)),
            FREE_ON_PAGES: waste(paged.at(value)).free,
            REFUSED: refusal_in(contiguous, value),
        }
        for value in contiguous.values
    )


def refusal_in(scene: Scene, value: int) -> str:
    """The engine's reason, when the action that leads to `value` was refused."""
    if value == 0 or scene.frame_of[value] == scene.frame_of[value - 1]:
        return ""
    events = scene.trace.events_of(scene.frame_of[value])
    return "".join(f"{event.request_id}: {event.reason}" for event in events if isinstance(event, RequestRefused))
