"""The presenter's settings of the shared engine and their controls. A tab keeps them, so they are checked on return."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import streamlit as st

from engine.config import EngineConfig
from engine.i18n import _
from engine.trace.events import PreemptionMode
from views.live import config

BLOCK_SIZES = (1, 2, 4, 8, 16, 32)
NUMBERS_OF_BLOCKS = range(4, config.MAX_BLOCKS + 1)
WAYS: tuple[PreemptionMode, ...] = ("recompute", "swap")


@dataclass(frozen=True)
class RoomSettings:
    """What the presenter chooses of the shared engine."""

    block_size: int = 4
    num_blocks: int = 64
    preemption: PreemptionMode = "recompute"

    def config(self, model: str) -> EngineConfig:
        """The engine's config for this model."""
        return config.live_config(model, self.block_size, self.num_blocks, True, self.preemption)

    def as_dict(self) -> dict[str, Any]:
        """As JSON, for the tab to keep."""
        return asdict(self)


def settings_from(reported: Any) -> RoomSettings:
    """What a tab kept; the defaults for what cannot be."""
    if not isinstance(reported, dict):
        return RoomSettings()
    known = RoomSettings()
    block_size, num_blocks, way = (reported.get(name) for name in ("block_size", "num_blocks", "preemption"))
    return RoomSettings(
        next((size for size in BLOCK_SIZES if size == block_size), known.block_size),
        next((number for number in NUMBERS_OF_BLOCKS if number == num_blocks), known.num_blocks),
        next((known_way for known_way in WAYS if known_way == way), known.preemption),
    )


def draw_settings() -> None:
    """The controls of the settings."""
    size, number = st.columns(2)
    with size:
        st.selectbox(_("Block size"), BLOCK_SIZES, BLOCK_SIZES.index(RoomSettings.block_size), key="room_block_size")
    with number:
        st.number_input(
            _("Blocks"), NUMBERS_OF_BLOCKS[0], NUMBERS_OF_BLOCKS[-1], RoomSettings.num_blocks, key="room_num_blocks"
        )
    st.selectbox(_("Preemption"), list(config.WAYS_TO_MAKE_ROOM), format_func=_, key="room_make_room")


def chosen_settings() -> RoomSettings:
    """Within range, whatever the browser said."""
    reported = {
        "block_size": st.session_state.get("room_block_size"),
        "num_blocks": st.session_state.get("room_num_blocks"),
        "preemption": config.WAYS_TO_MAKE_ROOM.get(st.session_state.get("room_make_room", "")),
    }
    return settings_from(reported)
