"""HTML documents that hold memory maps with their frames and need nothing else: no server, no network."""

from __future__ import annotations

import html
import json
from collections.abc import Mapping, Sequence
from typing import Any

from engine.i18n import translations
from views.memory_map.assets import map_css, map_html, map_js

NO_NETWORK = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src blob: data:"
COLOURS = """
:root {
  color-scheme: light dark;
  --st-text-color: #1B2733; --st-background-color: #FFFFFF; --st-primary-color: #0067A8; --link: #005A94;
}
@media (prefers-color-scheme: dark) {
  :root { --st-text-color: #E8EDF2; --st-background-color: #10161D; --st-primary-color: #6CBDF2; --link: #8CCBF5; }
}
body { margin: 0; padding: 12px; background: var(--st-background-color); color: var(--st-text-color); }
h1 { margin: 0 0 8px; font: 600 1.1rem system-ui, sans-serif; }
"""
DRAW = """
const maps = JSON.parse(document.getElementById("maps").textContent);
const draw = (place, i) => memoryMap({ data: maps[i], parentElement: place, setStateValue() {} });
document.querySelectorAll(".map").forEach(draw);
"""


def map_place() -> str:
    """HTML of the place where a map is drawn, the first of a document's maps in the first such place, and so on."""
    return f'<div class="map">{map_html()}</div>'


def document(
    title: str, body: str, maps: Sequence[Mapping[str, Any]], *, style: str = "", description: str = ""
) -> str:
    """One HTML document. `body`: HTML with one `map_place` for each of `maps`, which are what a map's script takes as
    `data` (`views/memory_map/component.py`)."""
    data = json.dumps(maps).replace("<", "\\u003c")
    about = f'<meta name="description" content="{html.escape(description)}">\n' if description else ""
    script = f'<script type="module">\n{map_js()}\n{DRAW}</script>' if maps else ""
    language = translations().info().get("language", "en")
    css = f"{COLOURS}{map_css() if maps else ''}{style}"
    return (
        f'<!DOCTYPE html>\n<html lang="{html.escape(language)}"><head><meta charset="utf-8">'
        f"<title>{html.escape(title)}</title>\n"
        f'{about}<meta name="viewport" content="width=device-width"><meta http-equiv="Content-Security-Policy" '
        f'content="{NO_NETWORK}">\n<style>{css}</style></head>\n<body><main>{body}</main>\n'
        f'<script type="application/json" id="maps">{data}</script>\n{script}</body></html>\n'
    )
