"""Lesson "Waste between reservations": the reader's own arrivals, in runs of slots and on pages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd

from engine.contiguous import ALLOCATORS
from engine.events import RequestRefused
from engine.said import said
from engine.scenes.actions import MAX_ACTIONS, Action, Add, Finish, format_actions, next_name, parse_actions
from engine.scenes.fragmentation import BLOCK_SIZE, GAPS, NUM_SLOTS, Fragmentation, fragmentation
from engine.scenes.scene import Scene
from engine.state import CacheState
from engine.waste import longest_free_run, waste
from views.lesson_picture import Picture, Telling, picture, renamed
from views.made_once import made_once
from views.told import Figure, tell
from views.url_values import ChoiceRule, NumberRule
from views.words import translated

KEY = "fragmentation"
DONE = "done"
NAMES_OF_ALLOCATORS = {"first_fit": said("first fit"), "best_fit": said("best fit"), "buddy": said("buddy")}
ALLOCATOR = ChoiceRule("allocator", "Allocator", tuple(ALLOCATORS))
LARGEST_BLOCK = 8
PAGE_SIZE = NumberRule("block_size", "Block size", 1, LARGEST_BLOCK, BLOCK_SIZE)
LENGTH = NumberRule("length", "Tokens of the next request", 1, NUM_SLOTS, 6)
GAPS_TEXT = format_actions(GAPS)

EXAMPLES: dict[str, dict[str, int | str]] = {
    "Gaps of 8, 6 and 10": {"do": GAPS_TEXT, "done": len(GAPS), "allocator": "first_fit"},
    "Best fit keeps a gap": {"do": "A8 B4 C6 D14 -A -C E5 F8", "done": 8, "allocator": "best_fit"},
    "Buddy rounds up": {"do": "A5 B9 C3 D7", "done": 4, "allocator": "buddy"},
    "Empty memory": {"do": "", "done": 0},
}
ACTION, FREE, LONGEST, FREE_ON_PAGES, REFUSED = (
    "Actions", "Slots free", "Longest free run", "Slots free on pages", "Refused",
)  # fmt: skip


@dataclass(frozen=True)
class ActionsRule:
    """`?do=A8+-A` is a list of actions that can be replayed."""

    key: str = "do"

    def correct(self, raw: str) -> tuple[str, str] | None:
        try:
            parse_actions(raw)
        except ValueError as error:
            sentence = "The actions in the address cannot be replayed, so the prepared ones are. {error}"
            return GAPS_TEXT, said(sentence, error=str(error))
        return None


def refusals(state: CacheState) -> dict[str, Any]:
    refused = state.counters.num_refused
    return {"refused": refused}


def newest_holder(state: CacheState) -> str | None:
    """Who came last of those that hold blocks: its table is the one worth looking at."""
    return next((name for name, sequence in reversed(state.sequences.items()) if sequence.block_table), None)


IN_RUNS = Telling(
    label="{value:action}",
    figures=(
        Figure("Slots free", "{waste.free}"),
        Figure("Longest free run", "{longest_run}"),
        Figure("Lost to rounding up", "{waste.external_fragmentation}"),
        Figure("Requests refused", "{refused}"),
    ),
    beats=(
        "**In runs.** Free: {waste.free:slot}, and at most {longest_run} of them side by side. "
        "A request that needs a longer run is refused. Refused so far: {refused}.",
    ),
    more=refusals,
)
ON_PAGES = Telling(
    label="{value:action}",
    figures=(
        Figure("Slots free", "{waste.free}"),
        Figure("Blocks free", "{usage.num_free_blocks}"),
        Figure("Slots empty in last blocks", "{waste.num_empty}"),
        Figure("Requests refused", "{refused}"),
    ),
    beats=(
        "**On pages.** Free: {waste.free:slot}, in {usage.num_free_blocks:block}. Any free block fits any request, "
        "so a request starts whenever enough of them are free. Refused so far: {refused}.",
        "The price is the tail. Empty in last blocks: {waste.num_empty:slot}.",
    ),
    more=refusals,
    focus=newest_holder,
)


@dataclass(frozen=True)
class BothLayouts:
    """The same actions twice. `actions` are those that both replay."""

    actions: tuple[Action, ...]
    scenes: Fragmentation
    in_runs: Picture
    on_pages: Picture


@made_once(maxsize=64)
def both_layouts(text: str, allocator: str, block_size: int) -> BothLayouts:
    """Value k of both pictures: memory after the first k actions."""
    actions = parse_actions(text)
    scenes = fragmentation(actions, allocator, NUM_SLOTS, block_size)
    title = said("In runs, {allocator}", allocator=NAMES_OF_ALLOCATORS[allocator])
    return BothLayouts(
        actions,
        scenes,
        with_deeds(picture(scenes.contiguous, IN_RUNS, title), actions),
        with_deeds(picture(scenes.paged, ON_PAGES, "The same arrivals on pages"), actions),
    )


def with_deeds(replay: Picture, actions: Sequence[Action]) -> Picture:
    """The picture whose frames say what the reader did and what came of it: the map shows which slot holds what."""
    for frame, value in zip(replay.payload["frames"], replay.values, strict=True):
        frame["say"] = [deed(replay.scene, actions, value)]
    return replace(replay, payload=renamed(replay.payload))


def deed(scene: Scene, actions: Sequence[Action], value: int) -> str:
    """The action that leads to `value`, in a sentence."""
    if value == 0:
        return translated("Memory is empty.")
    action, state = actions[value - 1], scene.at(value)
    facts = {"name": action.request_id, "action": action}
    if isinstance(action, Finish):
        ended = scene.frame_of[value] != scene.frame_of[value - 1]
        return tell("{name} ends and gives back what it held." if ended else "{name} ends; it held nothing.", facts)
    if region := state.regions.get(action.request_id):
        return tell(
            "{name} asks for {action.num_tokens:slot} in a row and gets {region.num_slots}.", facts | {"region": region}
        )
    if sequence := state.sequences.get(action.request_id):
        taken = len(sequence.block_table)
        return tell("{name} asks for {action.num_tokens:slot} and takes {taken:block}.", facts | {"taken": taken})
    refused = state.requests[action.request_id]
    return tell(
        "{name} asks for {action.num_tokens:slot} and is refused: {refused.reason}.", facts | {"refused": refused}
    )


def residents(both: BothLayouts) -> list[str]:
    """Who holds memory at the end, in either layout, in order of arrival."""
    value = len(both.actions)
    holders = set(both.scenes.contiguous.at(value).regions)
    holders |= {name for name, sequence in both.scenes.paged.at(value).sequences.items() if sequence.block_table}
    return [action.request_id for action in both.actions if isinstance(action, Add) and action.request_id in holders]


def has_room_for_more(actions: Sequence[Action]) -> bool:
    return len(actions) < MAX_ACTIONS


def with_request(actions: Sequence[Action], num_tokens: int) -> str:
    return format_actions([*actions, Add(next_name(actions), num_tokens)])


def over_time(both: BothLayouts) -> pd.DataFrame:
    """One row a number of actions: what is free in either layout, and who was refused by then."""
    contiguous, paged = both.scenes.contiguous, both.scenes.paged
    return pd.DataFrame(
        {
            ACTION: value,
            FREE: waste(contiguous.at(value)).free,
            LONGEST: longest_free_run(contiguous.at(value)),
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
