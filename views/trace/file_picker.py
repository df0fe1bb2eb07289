"""A picker of one text file. (In Streamlit's own, axe finds a named element that is marked as decoration.)

The file arrives as text, once, at the callback, which calls `taken_file`. Its size and type are checked here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import streamlit as st

from engine.i18n import N_, _
from views.browser.assets import read_assets

LARGEST_MB = 10
"""As JSON within a message this stays below the 16 MB that the server takes at a time."""


_PICKER = st.components.v2.component(
    "file_picker",
    html=read_assets("file_picker/file_picker.html"),
    css=read_assets("file_picker/file_picker.css"),
    js=read_assets("file_picker/file_picker.js"),
)


@dataclass(frozen=True)
class TakenFile:
    """`problem`: one sentence when the text cannot be used."""

    name: str
    text: str
    problem: str = ""


def pick_file(label: str, accept: str, *, key: str, on_pick: Callable[[], None]) -> None:
    """Draw the picker. `accept`: file endings such as `.json`. `on_pick` runs when a file was picked."""
    data = {"label": label, "accept": accept, "largest": LARGEST_MB * 1_000_000}
    _PICKER(key=key, data=data, on_file_change=on_pick)


def taken_file(key: str) -> TakenFile | None:
    """For the callback: the file that was just picked."""
    reported = st.session_state[key].file
    if not isinstance(reported, dict) or not isinstance(reported.get("name"), str):
        return None
    name, text, size = reported["name"][:200], reported.get("text"), reported.get("size")
    if isinstance(text, str) and len(text) <= LARGEST_MB * 1_000_000:
        return TakenFile(name, text)
    is_large = not isinstance(size, int | float) or size > LARGEST_MB * 1_000_000
    return TakenFile(name, "", _(_TOO_LARGE).format(most=LARGEST_MB) if is_large else _(_NO_TEXT))


_TOO_LARGE = N_("This file is larger than {most} MB, the most that is read here.")
_NO_TEXT = N_("This file is not text in UTF-8.")
