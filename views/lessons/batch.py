"""Lesson "Memory across a batch": the same requests in reservations and in blocks, and two gauges of one pool."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from engine.scenes.batch import BLOCK_SIZE, LENGTHS, NUM_RESERVED, batch, blocks_side_by_side
from engine.state import CacheState
from engine.waste import percent_fewer_held, waste
from views.batch_comparison import Charted, charted_comparison, charted_usage
from views.lesson_picture import Picture, Telling, picture
from views.made_once import made_once
from views.told import Figure
from views.url_values import NumberRule

KEY, GAUGE = "batch", "gauge"
REQUESTS, DEFAULT_REQUESTS = "requests", 5
LARGEST_BLOCK = 64
BLOCK = NumberRule("block_size", "Block size", 1, LARGEST_BLOCK, BLOCK_SIZE)
RESERVED = NumberRule("reserved", "Slots reserved for each", max(LENGTHS), 128, NUM_RESERVED)

EXAMPLES: dict[str, dict[str, int | str]] = {
    "Five requests": {"requests": 5, "block_size": BLOCK_SIZE, "reserved": NUM_RESERVED},
    "Blocks of one slot": {"requests": 10, "block_size": 1, "reserved": NUM_RESERVED},
    "Blocks of 16": {"requests": 10, "block_size": 16, "reserved": NUM_RESERVED},
    "A limit of 128": {"requests": 10, "block_size": 16, "reserved": 128},
}

FIGURES = (
    Figure("Slots reserved", "{reserved.num_held}"),
    Figure("Slots in blocks", "{in_blocks.num_held}"),
    Figure("Tokens stored", "{in_blocks.token_states}"),
    Figure("Fewer slots", "{percent_fewer:.0f} %"),
)
BEATS_OF_RESERVATIONS = (
    "**One reservation each.** {value:request} hold {reserved.num_held:slot} from start to end, "
    "whatever they write. {reserved.num_empty} of these are empty.",
)
BEATS_OF_BLOCKS = (
    "**Blocks.** Each request rounds up to whole blocks of its own: {in_blocks.num_held:slot} in all, "
    "{in_blocks.num_empty} of them empty.",
    "Both store the same {in_blocks.token_states:token}. Blocks hold {percent_fewer:.0f} % fewer slots.",
)
SAY_RESERVED = (
    "{value:request}: {in_blocks.token_states:token} stored.",
    "Reserved: {reserved.num_held:slot}, {reserved.num_empty} of them empty.",
)
SAY_IN_BLOCKS = ("In blocks: {in_blocks.num_held:slot}, {in_blocks.num_empty} of them empty.",)


@dataclass(frozen=True)
class BothLayouts:
    """Value k of both pictures: the first k requests with all their tokens. `gauges`: the two gauges of the blocks."""

    reserved: Picture
    in_blocks: Picture
    slots: Charted
    gauges: Charted


@made_once(maxsize=32)
def both_layouts(num_reserved: int, block_size: int) -> BothLayouts:
    scenes = batch(LENGTHS, num_reserved, block_size)

    def compare(state: CacheState) -> Mapping[str, Any]:
        """A step adds a request in both layouts, so the step says which two frames belong together."""
        reserved, in_blocks = scenes.contiguous.at(state.step), scenes.paged.at(state.step)
        return {
            "reserved": waste(reserved),
            "in_blocks": waste(in_blocks),
            "percent_fewer": percent_fewer_held(in_blocks, reserved),
        }

    telling = Telling("{value:request}", FIGURES, SAY_RESERVED, BEATS_OF_RESERVATIONS, compare)
    in_blocks = Telling("{value:request}", (), SAY_IN_BLOCKS, BEATS_OF_BLOCKS, compare)
    return BothLayouts(
        picture(scenes.contiguous, telling, "One reservation for each request"),
        picture(scenes.paged, in_blocks, "The same requests in blocks"),
        charted_comparison(scenes),
        charted_usage(scenes.paged),
    )


GAUGE_LENGTHS, GAUGE_BLOCK_SIZE, GAUGE_BLOCKS = (17, 18), 16, 6
"""Two prompts of 17 tokens in blocks of 16; the second has written one token of its reply."""
GAUGE_REQUESTS = "running"

GAUGE_BEATS = (
    "{value:request} with {usage.num_tokens_written:token} in all, in blocks of {usage.block_size}. "
    "The gauge reads **{usage.block_fraction:.1%}**; **{usage.slot_fraction:.1%}** of the slots hold keys and values.",
    "One token more than a block holds opens a second block, and almost all of that one is empty. "
    "With long texts the two gauges come close; with short ones they do not.",
)
GAUGE_FIGURES = (
    Figure("Blocks used", "{usage.num_used_blocks}"),
    Figure("Blocks in the pool", "{usage.num_blocks}"),
    Figure("Gauge of blocks", "{usage.block_fraction:.1%}"),
    Figure("Slots in use", "{usage.slot_fraction:.1%}"),
)


@made_once(maxsize=1)
def gauge() -> Picture:
    """Values: requests running."""
    scene = blocks_side_by_side(GAUGE_LENGTHS, GAUGE_BLOCK_SIZE, GAUGE_BLOCKS)
    say = (
        "{value:request}: {usage.num_used_blocks} of {usage.num_blocks:block} used, "
        "{usage.num_written_slots} of {usage.num_slots:slot} hold keys and values.",
    )
    return picture(scene, Telling("{value:request}", GAUGE_FIGURES, say, GAUGE_BEATS), "Two gauges of one pool")
