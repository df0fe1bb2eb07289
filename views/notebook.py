"""A trace as a document of its own: the memory map with its frames inside, for a notebook or a file. No network.

    from views.notebook import show
    show(engine.trace)                              in a notebook: the map, with all its keys, below the cell

    python -m views.notebook trace.json > map.html      the same as a page that opens in any browser

Neither Streamlit nor a server is needed. SVG, PNG and the frames as JSON are in the map's Export menu.
"""

from __future__ import annotations

import html
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from engine.trace import Trace, TraceError
from views.frames import frames_payload
from views.map_assets import map_css, map_html, map_js

NO_NETWORK = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src blob: data:"
COLOURS = """
:root {
  color-scheme: light dark;
  --st-text-color: #1B2733; --st-background-color: #FFFFFF; --st-primary-color: #0067A8;
}
@media (prefers-color-scheme: dark) {
  :root { --st-text-color: #E8EDF2; --st-background-color: #10161D; --st-primary-color: #6CBDF2; }
}
body { margin: 0; padding: 12px; background: var(--st-background-color); color: var(--st-text-color); }
h1 { margin: 0 0 8px; font: 600 1.1rem system-ui, sans-serif; }
"""
DRAW = """
memoryMap({
  data: { payload: JSON.parse(document.getElementById("payload").textContent), selected_seq: null, position: null },
  parentElement: document.body,
  setStateValue() {},
});
"""


@dataclass(frozen=True)
class ShownTrace:
    """What a notebook draws of a trace. `document` is the whole page as HTML."""

    document: str
    height: int

    def _repr_html_(self) -> str:
        """In a frame of its own: it can neither touch the notebook nor be touched by its styles."""
        page = html.escape(self.document, quote=True)
        return (
            f'<iframe title="Memory map" srcdoc="{page}" sandbox="allow-scripts allow-downloads" '
            f'style="width: 100%; height: {self.height}px; border: 0"></iframe>'
        )


def show(trace: Trace, *, title: str = "Memory map", height: int = 820) -> ShownTrace:
    """The memory map of a trace, every step of it. `height` in pixels."""
    return ShownTrace(map_document(trace, title), height)


def map_document(trace: Trace, title: str = "Memory map") -> str:
    """One HTML document that needs nothing else."""
    payload = json.dumps(frames_payload(trace, title=title)).replace("<", "\\u003c")
    return (
        f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>{html.escape(title)}</title>\n'
        f'<meta name="viewport" content="width=device-width"><meta http-equiv="Content-Security-Policy" '
        f'content="{NO_NETWORK}">\n<style>{COLOURS}{map_css()}</style></head>\n<body><main><h1>{html.escape(title)}</h1>{map_html()}</main>\n'
        f'<script type="application/json" id="payload">{payload}</script>\n'
        f'<script type="module">\n{map_js()}\n{DRAW}</script></body></html>\n'
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the document of a trace file to standard output. Returns the exit status."""
    files = sys.argv[1:] if arguments is None else list(arguments)
    if len(files) != 1:
        print("Usage: python -m views.notebook TRACE.json > MAP.html", file=sys.stderr)
        return 2
    try:
        sys.stdout.write(map_document(Trace.from_json(Path(files[0]).read_text("utf-8")), Path(files[0]).name))
    except (TraceError, OSError, UnicodeDecodeError) as error:
        print(f"{files[0]}: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
