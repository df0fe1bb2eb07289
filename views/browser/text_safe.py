"""Text of users and models, made visible and harmless, never changed.

Token pieces are shown by `textContent` in the memory map and by `st.text` / `st.code` elsewhere. Nothing here is for
markdown, nor for Plotly, whose labels read tags: user text never goes there.
"""

from __future__ import annotations

import unicodedata

SPACE_MARK, TAB_MARK, NEWLINE_MARK, RETURN_MARK = "·", "⇥", "↵", "␍"
EMPTY_MARK = "∅"
_WHITESPACE_MARKS = {" ": SPACE_MARK, "\t": TAB_MARK, "\n": NEWLINE_MARK, "\r": RETURN_MARK}
_INVISIBLE_CATEGORIES = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp", "Zs", "Mn", "Me"}


def visible_piece(piece: str) -> str:
    """A token's text as drawn in a slot: blanks as `·`, tabs as `⇥`, line ends as `↵`, nothing as `∅`.

    A piece of only invisible characters (a lone joiner, a direction mark, a control) is spelled `‹U+200D›`.
    Inside visible text such characters are part of the writing (emoji joiners, Arabic) and stay.
    """
    if not piece:
        return EMPTY_MARK
    if all(_is_invisible(c) and c not in _WHITESPACE_MARKS for c in piece):
        return "".join(_code_point(c) for c in piece)
    return "".join(_WHITESPACE_MARKS.get(c) or (_code_point(c) if _is_control(c) else c) for c in piece)


def _is_invisible(character: str) -> bool:
    return unicodedata.category(character) in _INVISIBLE_CATEGORIES


def _is_control(character: str) -> bool:
    return unicodedata.category(character) == "Cc"


def _code_point(character: str) -> str:
    return f"‹U+{ord(character):04X}›"
