"""The markdown that the course's prose uses, as HTML: paragraphs, lists, **strong**, *emphasis*, `code`, links."""

from __future__ import annotations

import html
import re

_INLINE = (
    (re.compile(r"\*\*(.+?)\*\*"), r"<strong>\1</strong>"),
    (re.compile(r"\*(.+?)\*"), r"<em>\1</em>"),
    (re.compile(r"\[([^\]]+)\]\((https?://[^)\s]+)\)"), r'<a href="\2">\1</a>'),
)


def to_html(text: str) -> str:
    """The HTML of a text of ours. Everything that is not markdown is escaped."""
    blocks = [block.strip().splitlines() for block in re.split(r"\n\s*\n", text.strip())]
    return "".join(map(_block, filter(None, blocks)))


def _block(lines: list[str]) -> str:
    if all(line.startswith("- ") for line in lines):
        return f"<ul>{''.join(f'<li>{_inline(line[2:])}</li>' for line in lines)}</ul>"
    return f"<p>{_inline(' '.join(lines))}</p>"


def _inline(text: str) -> str:
    """Code first: what stands in it is no markdown."""
    parts = html.escape(text, quote=False).split("`")
    return "".join(f"<code>{part}</code>" if i % 2 else _marked(part) for i, part in enumerate(parts))


def _marked(text: str) -> str:
    for pattern, replacement in _INLINE:
        text = pattern.sub(replacement, text)
    return text
