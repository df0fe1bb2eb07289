"""One line that says what runs here: the model, the attention backend and why that one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import streamlit as st

from engine.said import said
from views.html_parts import escaped
from views.model_loading import draw_loading
from views.server import default_model, model_shelf
from views.words import translated

NOISE = said("This model has random weights, so its words are noise; its memory behaves like any other's.")


def banner_sentence(info: Mapping[str, Any]) -> str:
    """From a trace's `info`. A source that does not know something leaves it out."""
    if "backend" not in info:
        return said("Source: {source}.", source=info.get("source", "unknown"))
    return said(
        "{info[model]} in {info[dtype]} on {info[device]}. Attention backend: {info[backend]} "
        "({info[backend_reason]}).{noise}",
        info=info,
        noise=said(" {noise}", noise=NOISE) if info["model"] == "tiny-random" else "",
    )


def backend_banner(info: Mapping[str, Any]) -> str:
    """The line as HTML."""
    sentence, name = escaped(translated(banner_sentence(info))), escaped(translated("What runs here"))
    return f'<div class="pv-banner" data-banner role="note" aria-label="{name}">{sentence}</div>'


def draw_banner_of_default_model() -> None:
    """For pages without an engine of their own: what the server runs, or how far it has come in loading it."""
    loading = model_shelf().ask(default_model())
    if loading.model is None:
        draw_loading(default_model())
    else:
        st.html(backend_banner(loading.model.info))
