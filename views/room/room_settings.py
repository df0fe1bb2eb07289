"""The controls for what the presenter chooses of the shared engine."""

from __future__ import annotations

import streamlit as st

from views.live_settings import WAYS_TO_MAKE_ROOM
from views.room.settings import BLOCK_SIZES, NUMBERS_OF_BLOCKS, RoomSettings, settings_from

_DEFAULT = RoomSettings()


def draw_settings() -> None:
    size, number = st.columns(2)
    with size:
        st.selectbox("Block size", BLOCK_SIZES, BLOCK_SIZES.index(_DEFAULT.block_size), key="room_block_size")
    with number:
        st.number_input(
            "Blocks", NUMBERS_OF_BLOCKS[0], NUMBERS_OF_BLOCKS[-1], _DEFAULT.num_blocks, key="room_num_blocks"
        )
    st.selectbox("When memory is short", list(WAYS_TO_MAKE_ROOM), key="room_make_room")


def chosen_settings() -> RoomSettings:
    """Within range, whatever the browser said."""
    told = {
        "block_size": st.session_state.get("room_block_size"),
        "num_blocks": st.session_state.get("room_num_blocks"),
        "preemption": WAYS_TO_MAKE_ROOM.get(st.session_state.get("room_make_room", "")),
    }
    return settings_from(told)
