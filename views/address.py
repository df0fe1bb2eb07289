"""Values that the address carries besides those of widgets: written by the browser, read when a tab comes.

Writing `st.query_params` would make an entry in the browser's history each time, and Back would walk through them.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import streamlit as st

_SCRIPT = Path(__file__).resolve().parent.parent / "assets" / "address" / "address.js"
_ADDRESS = st.components.v2.component("address", js=_SCRIPT.read_text(encoding="utf-8"))


def keep_in_address(values: Mapping[str, str | None]) -> None:
    """Put each value under its name; None takes the name away. What else the address holds stays."""
    _ADDRESS(key="address", data={"values": dict(values), "others": st.query_params.to_dict()}, height=0)
