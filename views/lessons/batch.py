"""Lesson "Memory across a batch": the same requests in reservations and in blocks, and two gauges of one pool."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd
import plotly.graph_objects as go

from course.batch.lesson import LESSON
from course.batch.scene import (
    BLOCK_SIZE,
    LENGTHS,
    NUM_RESERVED,
    Batch,
    BatchLayouts,
    batch,
    blocks_side_by_side,
    gauges_by_requests,
    num_that_fit,
)
from course.conversation import CONVERSATION
from course.messages import Message, Percent, Plural
from course.scene import Scene
from engine.baselines.fragmentation import percent_fewer_held, waste
from engine.i18n import N_, _
from engine.trace.event_base import percentage
from engine.trace.state import CacheState
from engine.trace.usage import num_held_slots_of
from views.elements.charts import line_chart
from views.figures import Figure
from views.lesson_picture import FrameTexts, Picture, picture
from views.server.memoize import memoize
from views.url_values import ChoiceRule, NumberRule

KEY, GAUGE = LESSON.key, "gauge"
REQUESTS, DEFAULT_REQUESTS = "requests", 5
LARGEST_BLOCK, LARGEST_RESERVATION = 64, 128
BLOCK = NumberRule("block_size", N_("Block size"), 1, LARGEST_BLOCK, BLOCK_SIZE)
TEN, CHAT = N_("ten lengths"), N_("three chat requests")
BATCHES: dict[str, Batch] = {TEN: LENGTHS, CHAT: tuple(request.words for request in CONVERSATION)}
BATCH = ChoiceRule("batch", N_("Requests"), tuple(BATCHES))

EXAMPLES: dict[str, dict[str, int | str]] = {
    N_("Five requests"): {"batch": TEN, "requests": 5, "block_size": BLOCK_SIZE, "reserved": NUM_RESERVED},
    N_("Blocks of one slot"): {"batch": TEN, "requests": 10, "block_size": 1, "reserved": NUM_RESERVED},
    N_("Blocks of 16"): {"batch": TEN, "requests": 10, "block_size": 16, "reserved": NUM_RESERVED},
    N_("A limit of 128"): {"batch": TEN, "requests": 10, "block_size": 16, "reserved": 128},
    N_("Three chat requests"): {"batch": CHAT, "requests": 3, "block_size": BLOCK_SIZE, "reserved": 32},
}

FIGURES = (
    Figure(N_("Slots reserved"), "{reserved.num_held}"),
    Figure(N_("Slots in blocks"), "{in_blocks.num_held}"),
    Figure(N_("Tokens stored"), "{in_blocks.token_states}"),
    Figure(N_("Slots blocks hold"), "{difference}"),
)
CAPTIONS_OF_RESERVATIONS = (
    Message(
        N_(
            "**One reservation each.** {value} {num_held} from start to end, whatever is written: "
            "{reserved.num_empty} of them empty."
        ),
        value=Plural("value", "{n} request holds", "{n} requests hold"),
        num_held=Plural("reserved.num_held", "{n} slot", "{n} slots"),
    ),
)
CAPTIONS_OF_BLOCKS = (
    Plural(
        "in_blocks.num_held",
        "**Blocks.** Each request rounds up to whole blocks of its own: {n} slot in all, "
        "{in_blocks.num_empty} of them empty.",
        "**Blocks.** Each request rounds up to whole blocks of its own: {n} slots in all, "
        "{in_blocks.num_empty} of them empty.",
    ),
    Plural(
        "in_blocks.token_states",
        "Both store the same {n} token. Blocks hold {difference} slots.",
        "Both store the same {n} tokens. Blocks hold {difference} slots.",
    ),
)
SAY_RESERVED = (
    Message(
        N_("{value}: {token_states} stored."),
        value=Plural("value", "{n} request", "{n} requests"),
        token_states=Plural("in_blocks.token_states", "{n} token", "{n} tokens"),
    ),
    Plural(
        "reserved.num_held",
        "Reserved: {n} slot, {reserved.num_empty} of them empty.",
        "Reserved: {n} slots, {reserved.num_empty} of them empty.",
    ),
)
SAY_IN_BLOCKS = (
    Plural(
        "in_blocks.num_held",
        "In blocks: {n} slot, {in_blocks.num_empty} of them empty.",
        "In blocks: {n} slots, {in_blocks.num_empty} of them empty.",
    ),
)
NUM_REQUESTS, REQUEST = N_("Requests"), N_("Request")
SLOTS_RESERVED, SLOTS_IN_BLOCKS = N_("Slots reserved"), N_("Slots in blocks")
TOKENS_STORED, COMPARED = N_("Tokens stored"), N_("Slots blocks hold")
BLOCKS_USED, SLOTS_IN_USE = N_("Blocks used, %"), N_("Slots in use, %")


@dataclass(frozen=True)
class Charted:
    """A table and its chart, made once for all tabs: they take longer than the rest of the page."""

    table: pd.DataFrame
    chart: go.Figure


@dataclass(frozen=True)
class BatchPictures:
    """Value k of both pictures: the first k requests with all their tokens. `gauges`: the two gauges of the blocks.
    `num_reserved_fit`, `num_paged_fit`: requests that the same memory holds at once when they keep coming."""

    reserved: Picture
    in_blocks: Picture
    slots: Charted
    gauges: Charted
    scenes: BatchLayouts
    num_reserved_fit: int
    num_paged_fit: int


def reserved_rule(name: str) -> NumberRule:
    """A reservation has room for the longest request of the batch."""
    longest = max(request if isinstance(request, int) else len(request) for request in BATCHES[name])
    return NumberRule(
        "reserved", N_("Slots reserved for each"), longest, LARGEST_RESERVATION, max(longest, NUM_RESERVED)
    )


@memoize(maxsize=32)
def both_layouts(num_reserved: int, block_size: int, name: str = TEN) -> BatchPictures:
    """The pictures of a batch in both layouts, made once for equal arguments."""
    scenes = batch(BATCHES[name], num_reserved, block_size)

    def compare(state: CacheState) -> Mapping[str, Any]:
        """A step adds a request in both layouts, so the step says which two frames belong together."""
        reserved, in_blocks = scenes.contiguous.at(state.step), scenes.paged.at(state.step)
        return {
            "reserved": waste(reserved),
            "in_blocks": waste(in_blocks),
            "difference": difference(in_blocks, reserved),
        }

    texts = FrameTexts(
        Plural("value", "{n} request", "{n} requests"), FIGURES, SAY_RESERVED, CAPTIONS_OF_RESERVATIONS, compare
    )
    in_blocks = FrameTexts(
        Plural("value", "{n} request", "{n} requests"), (), SAY_IN_BLOCKS, CAPTIONS_OF_BLOCKS, compare
    )
    return BatchPictures(
        picture(scenes.contiguous, texts, _("One reservation for each request")),
        picture(scenes.paged, in_blocks, _("The same requests in blocks")),
        charted_comparison(scenes),
        charted_usage(scenes.paged),
        scenes,
        *num_that_fit(BATCHES[name], num_reserved, block_size),
    )


def difference(paged: CacheState, contiguous: CacheState) -> str:
    """How many slots blocks hold beside reservations: `36 % fewer`, `220 % more`, `as many`."""
    percent = percent_fewer_held(paged, contiguous)
    if percent == 0:
        return _("as many")
    return (_("{percent} fewer") if percent > 0 else _("{percent} more")).format(
        percent=f"{percentage(abs(percent))} %"
    )


def holders_frame(both: BatchLayouts, number: int) -> pd.DataFrame:
    """One row a request of the first `number`: what it stores, and what it holds in either layout."""
    reserved, paged = both.contiguous.at(number), both.paged.at(number)
    return pd.DataFrame(
        {
            REQUEST: region.request_id,
            TOKENS_STORED: region.num_written,
            SLOTS_RESERVED: region.num_slots,
            SLOTS_IN_BLOCKS: num_held_slots_of(paged, region.request_id),
        }
        for region in reserved.regions.values()
    )


def comparison_frame(both: BatchLayouts) -> pd.DataFrame:
    """One row a number of requests, from 1."""
    return pd.DataFrame([_compared(both, number) for number in both.paged.values[1:]])


def _compared(both: BatchLayouts, number: int) -> dict[str, int | str]:
    contiguous, paged = both.contiguous.at(number), both.paged.at(number)
    return {
        NUM_REQUESTS: number,
        SLOTS_RESERVED: waste(contiguous).num_held,
        SLOTS_IN_BLOCKS: waste(paged).num_held,
        TOKENS_STORED: waste(paged).token_states,
        COMPARED: f"{difference(paged, contiguous)}",
    }


def charted_comparison(both: BatchLayouts) -> Charted:
    """`comparison_frame` as a table and a chart."""
    table = comparison_frame(both)
    return Charted(table, line_chart(table, NUM_REQUESTS, (SLOTS_RESERVED, SLOTS_IN_BLOCKS, TOKENS_STORED), _("Slots")))


def usage_frame(scene: Scene) -> pd.DataFrame:
    """One row a number of requests: what a gauge of blocks says, and what a gauge of slots would."""
    gauges = gauges_by_requests(scene).items()
    return pd.DataFrame(
        {NUM_REQUESTS: number, BLOCKS_USED: blocks, SLOTS_IN_USE: slots} for number, (blocks, slots) in gauges
    )


def charted_usage(scene: Scene) -> Charted:
    """`usage_frame` as a table and a chart."""
    table = usage_frame(scene)
    return Charted(table, line_chart(table, NUM_REQUESTS, (BLOCKS_USED, SLOTS_IN_USE), _("Percent of the pool")))


GAUGE_LENGTHS, GAUGE_BLOCK_SIZE, GAUGE_BLOCKS = (17, 18), 16, 6
"""Two prompts of 17 tokens in blocks of 16; the second has written one token of its reply."""
GAUGE_REQUESTS = "running"

GAUGE_CAPTIONS = (
    Message(
        N_(
            "{value} with {num_tokens_written} in all, in blocks of {usage.block_size}. KV cache usage is "
            "**{block_fraction}**; **{slot_fraction}** of the slots hold keys and values."
        ),
        value=Plural("value", "{n} request", "{n} requests"),
        num_tokens_written=Plural("usage.num_tokens_written", "{n} token", "{n} tokens"),
        block_fraction=Percent("usage.block_fraction", decimals=1, of_one=True),
        slot_fraction=Percent("usage.slot_fraction", decimals=1, of_one=True),
    ),
    N_(
        "One token more than a block holds needs a second block, and almost all of that one is empty. With "
        "long texts the two percentages are close; with short ones they are not."
    ),
)
GAUGE_FIGURES = (
    Figure(N_("Blocks used"), "{usage.num_used_blocks}"),
    Figure(N_("Blocks in the pool"), "{usage.num_blocks}"),
    Figure(N_("KV cache usage (blocks)"), Percent("usage.block_fraction", decimals=1, of_one=True)),
    Figure(N_("Slots in use"), Percent("usage.slot_fraction", decimals=1, of_one=True)),
)


@memoize(maxsize=1)
def gauge() -> Picture:
    """Values: requests running."""
    scene = blocks_side_by_side(GAUGE_LENGTHS, GAUGE_BLOCK_SIZE, GAUGE_BLOCKS)
    say = (
        Message(
            N_(
                "{value}: {usage.num_used_blocks} of {num_blocks} used, keys and values in "
                "{usage.num_written_slots} of {num_slots}."
            ),
            value=Plural("value", "{n} request", "{n} requests"),
            num_blocks=Plural("usage.num_blocks", "{n} block", "{n} blocks"),
            num_slots=Plural("usage.num_slots", "{n} slot", "{n} slots"),
        ),
    )
    return picture(
        scene,
        FrameTexts(Plural("value", "{n} request", "{n} requests"), GAUGE_FIGURES, say, GAUGE_CAPTIONS),
        _("Blocks used and slots used in one pool"),
    )
