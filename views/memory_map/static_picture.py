"""The last moment of a trace as one line and as an SVG without a script: what is left where no script may run."""

from __future__ import annotations

import math
from html import escape

from engine.trace.state import BlockState, CacheState
from engine.trace.trace import Trace
from engine.trace.usage import usage_of
from views.memory_map.labels import PALETTE

SLOT, GAP, COLUMNS = 14, 8, 8
"""Pixels of a slot and between blocks; blocks in a row."""
INK, PAPER, KEPT = "#1B2733", "#FFFFFF", "#DDDDDD"


def one_line(trace: Trace) -> str:
    """`A trace of 7 steps and 31 events: 5 of 32 blocks used, 18 tokens written.`"""
    state = _last_state(trace)
    begin = f"A trace of {trace.num_steps} steps and {len(trace.events)} events"
    if not state.blocks:
        return f"{begin}."
    usage = usage_of(state)
    used = f"{usage.num_used_blocks} of {len(state.blocks)} blocks used"
    return f"{begin}: {used}, {usage.num_tokens_written} tokens written."


def static_svg(trace: Trace) -> str:
    """The block pool after the last step: a row of slots a block. Written ones have the colour of a sequence that holds
    the block, or are grey where none does any more.

    Empty for a trace without blocks.
    """
    state = _last_state(trace)
    if not state.blocks:
        return ""
    colour_of = {seq_id: PALETTE[i % len(PALETTE)] for i, seq_id in enumerate(state.sequences)}
    width, height = state.block_size * SLOT + GAP, SLOT + 2 * GAP
    columns = max(1, min(COLUMNS, 800 // width))
    cells = "".join(
        f'<g transform="translate({GAP + i % columns * width},{GAP + i // columns * height})">'
        f"{_block(block, state, colour_of)}</g>"
        for i, block in enumerate(state.blocks)
    )
    size = (columns * width + GAP, math.ceil(len(state.blocks) / columns) * height + GAP)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{size[0]}" height="{size[1]}" '
        f'viewBox="0 0 {size[0]} {size[1]}" font-family="sans-serif" font-size="9">'
        f'<rect width="{size[0]}" height="{size[1]}" fill="{PAPER}"/>{cells}</svg>'
    )


def _last_state(trace: Trace) -> CacheState:
    state = CacheState()
    for event in trace:
        state.apply(event)
    return state


def _block(block: BlockState, state: CacheState, colour_of: dict[str, str]) -> str:
    holders = [seq_id for seq_id in block.owners if seq_id in colour_of]
    fill = colour_of[holders[0]] if holders else KEPT
    name = escape(f"{block.block_id} {'+'.join(holders)}".strip())
    slots = "".join(
        f'<rect x="{i * SLOT}" y="10" width="{SLOT}" height="{SLOT}" stroke="{INK}" '
        f'fill="{PAPER if slot is None else fill}"/>'
        for i, slot in enumerate(block.slots)
    )
    return f'<text y="8" fill="{INK}">{name}</text>{slots}'
