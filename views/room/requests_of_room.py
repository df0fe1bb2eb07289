"""The room's requests as a list: one's own first, then the newest of the others. Whose they are, nobody reads here."""

from __future__ import annotations

from collections.abc import Set

from views.engine_session import Moment
from views.request_list import request_list

MOST_SHOWN = 12
"""Forty browsers get this list once a second."""


def requests_of_room(moment: Moment, own: Set[str]) -> str:
    """`own`: the ids of this person's requests."""
    newest_first = list(reversed(moment.state.requests))
    mine = [name for name in newest_first if name in own]
    others = [name for name in newest_first if name not in own]
    return request_list(moment, mine[:MOST_SHOWN] + others[:MOST_SHOWN], dict.fromkeys(mine, "yours"))
