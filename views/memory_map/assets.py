"""The memory map's files, each kind as one text: what a page mounts and what a document carries within it."""

from __future__ import annotations

from views.browser.assets import read_assets, with_connection, with_texts


def map_html() -> str:
    """The HTML that the map's script fills."""
    return read_assets("memory_map/index.html")


def map_css() -> str:
    """The map's style sheet."""
    return read_assets("memory_map/style.css")


def map_js() -> str:
    """One JavaScript module, joined from one file a concern in name order. Its default export draws the map."""
    return with_texts(with_connection(read_assets("memory_map/js/*.js")))
