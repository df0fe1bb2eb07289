"""The memory map: the one picture of memory, on every page. A component that plays frames in the browser.

    payload = frames_payload(trace)
    shown = memory_map(payload, key="map", position=3)
    shown.position, shown.step        where the reader stands, after they let go of the slider
    shown.block_id, shown.seq_id      what they clicked

Scrubbing, playing and pointing happen in the browser; Python hears of it once the reader lets go.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import streamlit as st

from views.memory_map.assets import map_css, map_html, map_js
from views.memory_map.frames import Payload
from views.memory_map.reports import acknowledged, on_report

_MAP = st.components.v2.component("memory_map", html=map_html(), css=map_css(), js=map_js())

ALL_PARTS = ("tokens", "cursors", "tables")
"""Of the picture, besides memory: the tokens of a sequence, how many are known and written, block tables and wires."""
SELECTION_KINDS = ("token", "row", "block", "slot", "cpu", "sequence")


@dataclass(frozen=True, slots=True)
class MapSelection:
    """What the reader shows and chose. Fields that do not apply are None.

    position: index of the frame shown; step: that frame's step. kind: what was clicked (SELECTION_KINDS).
    slot: `block_id * block_size + offset`, or the slot of contiguous memory. logical_index: entry of the block
    table. token_position: position in the sequence. seq: grows with every click, to tell a new one from a rerun.
    """

    position: int
    step: int
    kind: str | None = None
    block_id: int | None = None
    slot: int | None = None
    seq_id: str | None = None
    logical_index: int | None = None
    token_position: int | None = None
    seq: int = 0


@dataclass(frozen=True, slots=True)
class Follows:
    """The map to follow: of its frame i, `positions[i]` stands beside it. `trace_id` names its payload."""

    trace_id: str
    positions: tuple[int, ...]


def memory_map(
    payload: Payload,
    *,
    key: str,
    selected_seq: str | None = None,
    position: int | None = None,
    controls: bool = True,
    height: int | None = None,
    share: float = 1.0,
    parts: tuple[str, ...] = ALL_PARTS,
    live: str | None = None,
    follows: Follows | None = None,
    followed: tuple[str, int] | None = None,
    on_move: Callable[[], None] | None = None,
    on_select: Callable[[], None] | None = None,
) -> MapSelection:
    """Draw the map and return what the reader shows and chose.

    The map fits itself into the viewport: blocks are drawn smaller until all of it is in view at once.

    position: the frame to stand at (clamped); None: the last one, and it follows the end as frames come.
    height: where given, pixels that the blocks should fit in.
    share: the part of the viewport's height that the map may take on a wide page, 0 to 1.
    parts: what is drawn besides memory until the reader asks for more detail (ALL_PARTS).
    live: path of a WebSocket that sends further frames (protocol: assets/memory_map/js/55_live.js).
    follows: another map on the page, whose slider moves this one too.
    followed: sequence and position of a token that the page explains; highlighted while nothing is pointed at.
    on_move, on_select: callbacks, run before the rerun that a released slider or a click causes.
    """
    result = _MAP(
        key=key,
        data={
            "payload": payload,
            "selected_seq": selected_seq,
            "position": position,
            "controls": controls,
            "height": height,
            "share": share,
            "parts": parts,
            "live": live,
            "follows": asdict(follows) if follows else None,
            "followed": followed,
            "acknowledged": acknowledged(key),
        },
        default={"position": None, "selection": None},
        on_position_change=partial(on_report, key, "position", on_move or _nothing),
        on_selection_change=partial(on_report, key, "selection", on_select or _nothing),
    )
    return read_selection(payload, position, result.position, result.selection)


def read_selection(payload: Payload, asked: int | None, position: Any, selection: Any) -> MapSelection:
    """What the browser reported, checked: it is input. Reports about another trace are ignored."""
    base = _place_in_open_run(payload, asked, position) if payload.get("is_open") else _place(payload, asked, position)
    if not isinstance(selection, dict) or selection.get("trace_id") != payload["trace_id"]:
        return base
    if selection.get("kind") not in SELECTION_KINDS:
        return base
    return MapSelection(
        base.position,
        base.step,
        kind=selection["kind"],
        block_id=_whole(selection.get("block")),
        slot=_whole(selection.get("slot")),
        seq_id=selection["seq_id"] if isinstance(selection.get("seq_id"), str) else None,
        logical_index=_whole(selection.get("logical")),
        token_position=_whole(selection.get("token")),
        seq=_whole(selection.get("seq")) or 0,
    )


def _place(payload: Payload, asked: int | None, position: Any) -> MapSelection:
    last = max(len(payload["frames"]) - 1, 0)
    reported = _reported(payload, position, "index")
    chosen = reported if reported is not None else asked
    index = last if chosen is None else min(max(chosen, 0), last)
    return MapSelection(index, payload["frames"][index]["step"] if payload["frames"] else 0)


def _place_in_open_run(payload: Payload, asked: int | None, position: Any) -> MapSelection:
    """The frames are the browser's, and only it knows how many there are: its word is taken for index and step."""
    index = _reported(payload, position, "index")
    step = _reported(payload, position, "step")
    fallback = max(asked or 0, 0)
    return MapSelection(fallback if index is None else index, fallback if step is None else step)


def _reported(payload: Payload, position: Any, field: str) -> int | None:
    if not isinstance(position, dict) or position.get("trace_id") != payload["trace_id"]:
        return None
    return _whole(position.get(field))


def _whole(value: Any) -> int | None:
    """A count from the browser (numbers may arrive as floats), or None for anything else."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return int(value) if is_number and 0 <= value < math.inf and value == int(value) else None


def _nothing() -> None:
    """A report that only the next run reads."""
