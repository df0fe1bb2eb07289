"""Streamlit in the reader's language: pages that `from views.worded import st` write English and show what it says.

Labels, headings and prose are translated on their way to the browser; so are the names of options, never their values.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import TYPE_CHECKING, Any

import streamlit

from views.words import translated

__all__ = ["CHOOSING", "LABELLED", "draw_list", "st"]

LABELLED = frozenset(
    {"title", "header", "markdown", "text", "button", "number_input", "text_input", "expander", "page_link"}
)
"""Elements whose first argument, or `label`, is words."""
CHOOSING = frozenset({"selectbox", "pills", "radio"})
"""Elements whose options are words too."""


class _Worded:
    """Streamlit's names; those that draw words translate them first."""

    def __getattr__(self, name: str) -> Any:
        element = getattr(streamlit, name)
        if name in CHOOSING:
            return _choosing(element)
        return _labelled(element) if name in LABELLED else element


def _labelled(element: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(element)
    def draw(*args: Any, **options: Any) -> Any:
        if "label" in options:
            return element(*args, **options | {"label": translated(options["label"])})
        return element(translated(args[0]), *args[1:], **options)

    return draw


def _choosing(element: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(element)
    def draw(*args: Any, format_func: Callable[[Any], str] = str, **options: Any) -> Any:
        return _labelled(element)(*args, format_func=lambda option: translated(format_func(option)), **options)

    return draw


if TYPE_CHECKING:
    import streamlit as st
else:
    st = _Worded()


def draw_list(sentences: Sequence[str]) -> None:
    """Sentences as a bulleted list; they may hold links and strong words."""
    streamlit.markdown("\n".join(f"- {translated(sentence)}" for sentence in sentences))
