"""A bar of parts, each as wide as it is large, with a legend that says the same in words and figures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from views.html_parts import escaped


@dataclass(frozen=True, slots=True)
class BarPart:
    """`kind` picks the colour (assets/page/style.css); `name` and `amount` are its words, `size` its share."""

    kind: str
    name: str
    amount: str
    size: float


def bar(caption: str, parts: Sequence[BarPart]) -> str:
    """The bar as HTML. A number in each part, and before its name below, tells which is which without colour."""
    segments = "".join(
        f'<span data-kind="{escaped(part.kind)}" style="flex: {max(part.size, 0):.4f} 0 0">{number}</span>'
        for number, part in enumerate(parts, 1)
    )
    legend = "".join(
        f'<li data-kind="{escaped(part.kind)}"><b>{number}</b> {escaped(part.name)} '
        f"<span>{escaped(part.amount)}</span></li>"
        for number, part in enumerate(parts, 1)
    )
    return (
        f'<figure class="pv-bar"><figcaption>{escaped(caption)}</figcaption>'
        f'<div class="segments" aria-hidden="true">{segments}</div><ol>{legend}</ol></figure>'
    )
