"""The path below which the app is served: `--server.baseUrlPath kv` puts every page, socket and figure below `/kv`.

A proxy may as well take the path off before it passes a request on; then this server knows of none.
"""

from __future__ import annotations

from collections.abc import Iterable

import streamlit as st
from starlette.routing import BaseRoute, Route, WebSocketRoute


def base_path() -> str:
    """`/kv`, or empty at the root."""
    path = str(st.get_option("server.baseUrlPath") or "").strip("/")
    return f"/{path}" if path else ""


def below_base_path(routes: Iterable[Route | WebSocketRoute]) -> list[BaseRoute]:
    """The same routes below the base path, where the browser looks for them: Streamlit moves only its own."""
    return [type(route)(base_path() + route.path, route.endpoint, name=route.name) for route in routes]
