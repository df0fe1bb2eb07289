"""A box to bring a text file to. (In Streamlit's own, axe finds a part with a name that is marked as decoration.)

The file comes as text, once, to the callback's `taken_file`. It is foreign: its size and kind are checked here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import streamlit as st

_ASSETS = Path(__file__).resolve().parent.parent / "assets" / "file_picker"
LARGEST_MB = 10
"""As JSON within a message this stays below the 16 MB that the server takes at a time."""


def _read(name: str) -> str:
    return (_ASSETS / name).read_text(encoding="utf-8")


_PICKER = st.components.v2.component(
    "file_picker", html=_read("file_picker.html"), css=_read("file_picker.css"), js=_read("file_picker.js")
)


@dataclass(frozen=True)
class TakenFile:
    """`problem`: a sentence when the text is not to be had."""

    name: str
    text: str
    problem: str = ""


def pick_file(label: str, accept: str, *, key: str, on_pick: Callable[[], None]) -> None:
    """Draw the box. `accept`: endings such as `.json`. `on_pick` runs when there is a file."""
    data = {"label": label, "accept": accept, "largest": LARGEST_MB * 1_000_000}
    _PICKER(key=key, data=data, on_file_change=on_pick)


def taken_file(key: str) -> TakenFile | None:
    """For the callback: the file that was just brought."""
    reported = st.session_state[key].file
    if not isinstance(reported, dict) or not isinstance(reported.get("name"), str):
        return None
    name, text, size = reported["name"][:200], reported.get("text"), reported.get("size")
    if isinstance(text, str) and len(text) <= LARGEST_MB * 1_000_000:
        return TakenFile(name, text)
    is_large = not isinstance(size, int | float) or size > LARGEST_MB * 1_000_000
    return TakenFile(name, "", _TOO_LARGE if is_large else _NO_TEXT)


_TOO_LARGE = f"This file is larger than {LARGEST_MB} MB, the most that a trace may have here."
_NO_TEXT = "This is not a trace file: it is not text in UTF-8."
