"""Tokens side by side as HTML: what equals, what differs, with visible blanks. Told apart by a mark, not by colour."""

from __future__ import annotations

from collections.abc import Sequence

from views.html_parts import escaped
from views.text_safe import visible_piece


def chip(piece: str, kind: str = "") -> str:
    """One token. kind: "differs", "shared", "common" or none; each has a look of its own without colour."""
    return f'<span class="pv-piece {kind}">{escaped(visible_piece(piece))}</span>'


def reply_chips(pieces: Sequence[str], first_difference: int | None) -> str:
    """A reply, token by token; from `first_difference` on it is another one than it should be."""
    return "".join(
        chip(piece, "differs" if first_difference is not None and index >= first_difference else "")
        for index, piece in enumerate(pieces)
    )
