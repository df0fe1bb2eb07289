"""Small pieces of HTML that pages draw with `st.html`. Every text from outside is escaped here, never by a caller."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from typing import Literal

import streamlit as st

from engine.i18n import _
from engine.trace.usage import Usage
from views.memory_map.labels import OwnerLabel


def escaped(text: str) -> str:
    """Text as HTML shows it, character for character."""
    return html.escape(text, quote=True)


def notice(sentence: str, kind: Literal["note", "problem"] = "note") -> str:
    """One sentence in a box, read out at once when it is a problem."""
    role = "alert" if kind == "problem" else "status"
    return f'<div class="pv-notice {kind}" role="{role}"><p>{escaped(sentence)}</p></div>'


def draw_list(sentences: Sequence[str]) -> None:
    """Sentences as a bulleted list; they may hold links and strong words."""
    st.markdown("\n".join(f"- {sentence}" for sentence in sentences))


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


def usage_figures(step: int, usage: Usage) -> str:
    """Step, blocks by state, and slots written of those held."""
    return figures(
        [
            ("step", _("Step"), str(step)),
            ("used", _("Blocks used"), str(usage.num_used_blocks)),
            ("cached", _("Blocks cached"), str(usage.num_cached_blocks)),
            ("free", _("Blocks free"), str(usage.num_free_blocks)),
            (
                "written",
                _("Slots written"),
                _("{written} of {held}").format(written=usage.num_written_slots, held=usage.num_held_slots),
            ),
            ("copies_avoided", _("Blocks saved by sharing"), str(usage.num_copies_avoided)),
        ]
    )


def owner_badge(label: OwnerLabel) -> str:
    """The letter of a sequence in its colour."""
    return f'<span class="pv-owner" style="{owner_style(label)}">{escaped(label.letter)}</span>'


def owner_style(label: OwnerLabel) -> str:
    """Sets the colour that the style sheet's rules read."""
    return f"--pv-owner: {label.hex}"
