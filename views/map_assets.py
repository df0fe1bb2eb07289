"""The memory map's files, each kind as one text: what a page mounts and what a document carries within it."""

from __future__ import annotations

from pathlib import Path

ASSETS = Path(__file__).resolve().parent.parent / "assets" / "memory_map"


def map_html() -> str:
    return _read("index.html")


def map_css() -> str:
    return _read("style.css")


def map_js() -> str:
    """One JavaScript module, joined from one file a concern in name order. Its default export draws the map."""
    return _read("js/*.js")


def _read(pattern: str) -> str:
    return "\n".join(path.read_text(encoding="utf-8") for path in sorted(ASSETS.glob(pattern)))
