"""The memory map's files, each kind as one text: what a page mounts and what a document carries within it."""

from __future__ import annotations

import json
from pathlib import Path

from views.words import translated
from views.words.script import words_of_script

ASSETS = Path(__file__).resolve().parent.parent / "assets" / "memory_map"


def map_html() -> str:
    return _read("index.html")


def map_css() -> str:
    return _read("style.css")


def map_js() -> str:
    """One JavaScript module, joined from one file a concern in name order. Its default export draws the map.

    Above it stand its words in the server's language, none for English.
    """
    script = _read("js/*.js")
    words = {text: other for text in words_of_script(script) if (other := translated(text)) != text}
    return f"const WORDS = {_for_script(words)};\n{script}"


def _for_script(words: dict[str, str]) -> str:
    """As JavaScript that may also stand within a page: nothing in it closes a script."""
    return json.dumps(words).replace("<", "\\u003c")


def _read(pattern: str) -> str:
    return "\n".join(path.read_text(encoding="utf-8") for path in sorted(ASSETS.glob(pattern)))
