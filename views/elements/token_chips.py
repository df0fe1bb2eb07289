"""Tokens as HTML, with visible spaces: what is equal and what differs, marked by more than colour; replies compared."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from engine.i18n import _, counted
from views.browser.text_safe import visible_piece
from views.html_parts import escaped

if TYPE_CHECKING:
    from engine.inspect.scratch import Reply  # torch comes with it


def chip(piece: str, kind: str = "", *, is_control: bool = False) -> str:
    """One token. kind: "differs", "shared", "common" or none; each has a look of its own without colour.

    `is_control`: a control token, framed and with a title; the same letters typed as text look like other text.
    The text runs from right to left where it is Hebrew or Arabic (dir="auto").
    """
    classes = " ".join(filter(None, ("pv-piece", kind, "control" if is_control else "")))
    words = escaped(_("control token"))
    title = f' title="{words}"' if is_control else ""
    return f'<span class="{classes}"{title} dir="auto">{escaped(visible_piece(piece))}</span>'


def reply_chips(pieces: Sequence[str], first_difference: int | None) -> str:
    """A reply, token by token; from `first_difference` on it is another one than it should be."""
    return "".join(
        chip(piece, "differs" if first_difference is not None and index >= first_difference else "")
        for index, piece in enumerate(pieces)
    )


def reply_card(
    name: str,
    key: str,
    reply: Reply,
    reference: Reply | None,
    first_difference: int | None,
    display: Callable[[int], str],
) -> str:
    """One reply under its name, compared with `reference` if there is one. `key` is what tests find it by.

    first_difference: index of the first token that differs from the reference's; None when none does.
    """
    pieces = [display(token_id) for token_id in reply.token_ids]
    verdict = "" if reference is None else difference_in_words(reply, reference, first_difference)
    mark = "" if first_difference is None else ' data-wrong="true"'
    return (
        f'<div class="pv-reply" data-reply="{escaped(key)}"{mark}>'
        f'<div class="head"><strong>{escaped(name)}</strong> <span class="verdict">{escaped(verdict)}</span></div>'
        f'<div class="pv-text reply" dir="auto">{escaped(reply.text)}</div>'
        f'<div class="chips">{reply_chips(pieces, first_difference)}</div></div>'
    )


def difference_in_words(reply: Reply, reference: Reply, first_difference: int | None) -> str:
    """How many tokens of two replies are equal, and what follows."""
    if first_difference is None:
        return counted("The same {n} token.", "The same {n} tokens.", len(reply.token_ids))
    if not reply.token_ids:
        return counted(
            "No token came; {n} was expected.",
            "No tokens came; {n} were expected.",
            len(reference.token_ids),
        )
    if first_difference == 0:
        return _("Different from the first token on.")
    if first_difference == len(reply.token_ids):
        return counted("The same {n} token, then it ends.", "The same {n} tokens, then it ends.", first_difference)
    return counted(
        "The same {n} token, then a different text.", "The same {n} tokens, then a different text.", first_difference
    )


def reply_cards(replies: Sequence[str]) -> str:
    """Cards side by side, or one below the other on a narrow page."""
    return f'<div class="pv-replies">{"".join(replies)}</div>'
