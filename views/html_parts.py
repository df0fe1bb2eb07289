"""Small pieces of HTML that pages draw with `st.html`. Every text from outside is escaped here, never by a caller."""

from __future__ import annotations

import html
from collections.abc import Iterable
from pathlib import Path
from typing import Literal

from views.labels import OwnerLabel
from views.words import translated

STYLE_SHEET = Path(__file__).resolve().parent.parent / "assets" / "page" / "style.css"


def escaped(text: str) -> str:
    """Text as HTML shows it, character for character."""
    return html.escape(text, quote=True)


def notice(sentence: str, kind: Literal["note", "problem"] = "note") -> str:
    """One sentence in a box, read out at once when it is a problem."""
    role = "alert" if kind == "problem" else "status"
    return f'<div class="pv-notice {kind}" role="{role}"><p>{escaped(translated(sentence))}</p></div>'


def small(sentence: str) -> str:
    """A sentence in small type, in the text's own colour: Streamlit's caption is too pale to be read by everybody."""
    return f'<p class="pv-scripted">{escaped(sentence)}</p>'


def figures(rows: Iterable[tuple[str, str, str]]) -> str:
    """Names with their figures: `(key, name, figure)`. The key is what tests find the figure by."""
    cells = (
        f'<div><dt>{escaped(name)}</dt><dd data-figure="{escaped(key)}">{escaped(figure)}</dd></div>'
        for key, name, figure in rows
    )
    return f'<dl class="pv-figures">{"".join(cells)}</dl>'


def owner_badge(label: OwnerLabel) -> str:
    """The letter of a sequence in its colour."""
    return f'<span class="pv-owner" style="{owner_style(label)}">{escaped(label.letter)}</span>'


def owner_style(label: OwnerLabel) -> str:
    """Sets the colour that the style sheet's rules read."""
    return f"--pv-owner: {label.hex}"
