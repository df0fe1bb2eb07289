"""One line about what runs here: the model, the attention backend and why that one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import streamlit as st

from engine.i18n import N_, _
from views.html_parts import escaped
from views.models.loading import draw_loading
from views.server.model_registry import default_model, model_registry

NOISE = N_("This model has random weights, so its words are noise; its memory behaves like any other's.")


def banner_sentence(info: Mapping[str, Any]) -> str:
    """The sentence, from a trace's `info`; a source without a backend is only named."""
    if "backend" not in info:
        return _("Source: {source}.").format(source=info.get("source", "unknown"))
    return _(
        "{info[model]} in {info[dtype]} on {info[device]}. Attention backend: {info[backend]} "
        "({info[backend_reason]}).{note}{noise}"
    ).format(
        info=info,
        note=f" {info['device_note']}" if info.get("device_note") else "",
        noise=f" {_(NOISE)}" if info["model"] == "tiny-random" else "",
    )


def backend_banner(info: Mapping[str, Any]) -> str:
    """The line as HTML."""
    sentence, name = escaped(banner_sentence(info)), escaped(_("What runs here"))
    return f'<div class="pv-banner" data-banner role="note" aria-label="{name}">{sentence}</div>'


def draw_banner_of_default_model() -> None:
    """For pages without an engine of their own: the server's default model, or the progress of its load."""
    loading = model_registry().request(default_model())
    if loading.model is None:
        draw_loading(default_model())
    else:
        st.html(backend_banner(loading.model.info))
