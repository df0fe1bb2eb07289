"""A reply beside the reply it should be: as text, token by token, and where the two part."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from engine.events import plural
from views.html_parts import escaped
from views.token_chips import reply_chips


class Reply(Protocol):
    """What a sequence generated."""

    @property
    def token_ids(self) -> tuple[int, ...]: ...

    @property
    def text(self) -> str: ...


def reply_beside(
    name: str,
    key: str,
    reply: Reply,
    healthy: Reply | None,
    first_difference: int | None,
    display: Callable[[int], str],
) -> str:
    """One reply under its name; `healthy` is the one it is held against, if any. `key` is what tests find it by."""
    pieces = [display(token_id) for token_id in reply.token_ids]
    verdict = "" if healthy is None else verdict_of(reply, healthy, first_difference)
    mark = "" if first_difference is None else ' data-wrong="true"'
    return (
        f'<div class="pv-reply" data-reply="{escaped(key)}"{mark}>'
        f'<div class="head"><strong>{escaped(name)}</strong> <span class="verdict">{escaped(verdict)}</span></div>'
        f'<div class="pv-text reply">{escaped(reply.text)}</div>'
        f'<div class="chips">{reply_chips(pieces, first_difference)}</div></div>'
    )


def verdict_of(reply: Reply, healthy: Reply, first_difference: int | None) -> str:
    """Where two replies part, in words."""
    if first_difference is None:
        return f"The same {plural(len(reply.token_ids), 'token')}."
    if not reply.token_ids:
        return f"Nothing came; it should have {plural(len(healthy.token_ids), 'token')}."
    if first_difference == 0:
        return "Another text from the first token on."
    if first_difference == len(reply.token_ids):
        return f"The same {plural(first_difference, 'token')}, then nothing more."
    return f"The same {plural(first_difference, 'token')}, then another text."


def reply_list(replies: Sequence[str]) -> str:
    """Replies one below the other."""
    return f'<div class="pv-replies">{"".join(replies)}</div>'
