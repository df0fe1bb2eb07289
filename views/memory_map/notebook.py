"""A trace as a document of its own: the memory map with its frames inside, for a notebook or a file. No network.

    from views.memory_map.notebook import show
    show(engine.trace)                              in a notebook: the map, with all its keys, below the cell

    python -m views.memory_map.notebook trace.json > map.html      the same as a page that opens in any browser

Neither Streamlit nor a server is needed. SVG, PNG and the frames as JSON are in the map's Export menu.
"""

from __future__ import annotations

import base64
import html
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from engine.trace.trace import Trace, TraceError
from views.memory_map.document import document, map_place
from views.memory_map.frames import frames_payload
from views.memory_map.static_picture import one_line, static_svg

HIDE_BESIDE_THE_MAP = "<style>.paged-kv-map ~ .paged-kv-static { display: none }</style>"
"""A notebook that is not trusted strips the frame, and leaves the picture. The style counts for the whole notebook, so
it asks for a frame beside it: once one cell has run again, the pictures of the others stay."""


@dataclass(frozen=True, repr=False)
class ShownTrace:
    """What a notebook draws of a trace. `document` is the whole page as HTML, `line` what `print` gives, `svg` the last
    moment for where no script may run."""

    document: str
    height: int
    line: str
    svg: str

    def __repr__(self) -> str:
        return self.line

    def _repr_html_(self) -> str:
        """In a frame of its own: it can neither touch the notebook nor be touched by its styles."""
        page, line = html.escape(self.document, quote=True), html.escape(self.line, quote=True)
        image = base64.b64encode(self.svg.encode("utf-8")).decode("ascii")
        picture = f'<img src="data:image/svg+xml;base64,{image}" alt="{line}">' if self.svg else ""
        return (
            f'<iframe class="paged-kv-map" title="Memory map" srcdoc="{page}" sandbox="allow-scripts allow-downloads" '
            f'style="width: 100%; height: {self.height}px; border: 0"></iframe>{HIDE_BESIDE_THE_MAP}'
            f'<div class="paged-kv-static"><p>{line}</p>{picture}</div>'
        )


def show(trace: Trace, *, title: str = "Memory map", height: int = 820) -> ShownTrace:
    """The memory map of a trace, every step of it. `height` in pixels."""
    return ShownTrace(map_document(trace, title), height, one_line(trace), static_svg(trace))


def map_document(trace: Trace, title: str = "Memory map") -> str:
    """One HTML document that needs nothing else."""
    data = {"payload": frames_payload(trace, title=title), "selected_seq": None, "position": None}
    return document(title, f"<h1>{html.escape(title)}</h1>{map_place()}", [data])


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the document of a trace file to standard output. Returns the exit status."""
    files = sys.argv[1:] if arguments is None else list(arguments)
    if len(files) != 1:
        print("Usage: python -m views.memory_map.notebook TRACE.json > MAP.html", file=sys.stderr)
        return 2
    try:
        page = map_document(Trace.from_json(Path(files[0]).read_text("utf-8")), Path(files[0]).name)
        sys.stdout.buffer.write(page.encode("utf-8"))  # as the document says, whatever the terminal's encoding
    except (TraceError, OSError, UnicodeDecodeError) as error:
        print(f"{files[0]}: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
