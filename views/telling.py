"""Components whose script tells Python something until it has heard (assets/address/telling.js)."""

from __future__ import annotations

import secrets
from pathlib import Path
from typing import Any

import streamlit as st

_SCRIPTS = Path(__file__).resolve().parent.parent / "assets" / "address"
_SESSION = "name_of_session"


def component_that_tells(name: str) -> Any:
    """The component of the script with this name."""
    scripts = (_SCRIPTS / file for file in ("telling.js", f"{name}.js"))
    return st.components.v2.component(name, js="".join(script.read_text(encoding="utf-8") for script in scripts))


def session_name() -> str:
    """What tells this session from every other one."""
    return str(st.session_state.setdefault(_SESSION, secrets.token_hex(8)))


def heard(key: str, what: str) -> float | None:
    """Which telling of the component has arrived, by its time."""
    told = getattr(st.session_state[key], what) if key in st.session_state else None
    return told.get("told") if isinstance(told, dict) else None


def no_callback() -> None:
    """Component state needs a callback to have a default."""
