"""One line that says what runs here: the model, the attention backend and why that one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from views.html_parts import escaped

NOISE = " This model has random weights, so its words are noise; its memory behaves like any other's."


def banner_sentence(info: Mapping[str, Any]) -> str:
    """From a trace's `info`. A source that does not know something leaves it out."""
    if "backend" not in info:
        return f"Source: {info.get('source', 'unknown')}."
    return (
        f"{info['model']} in {info['dtype']} on {info['device']}. Attention backend: {info['backend']} "
        f"({info['backend_reason']}).{NOISE if info['model'] == 'tiny-random' else ''}"
    )


def backend_banner(info: Mapping[str, Any]) -> str:
    """The line as HTML."""
    return f'<div class="pv-banner" role="note" aria-label="What runs here">{escaped(banner_sentence(info))}</div>'
