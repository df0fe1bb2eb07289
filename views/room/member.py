"""One person in a room."""

from __future__ import annotations

import re
import time
import unicodedata
from dataclasses import dataclass, field

from views.room.limits import Spent

LONGEST_NAME = 24
_MEMBER_ID = re.compile(r"[A-Za-z0-9_-]{20,40}")


@dataclass
class Member:
    """`id` is the tab's secret. `lines`: sockets open now; `away_since`: when the last of them closed.

    moves_heard: the number of the last move that a presenter's tab told.
    """

    id: str
    name: str
    is_presenter: bool = False
    is_stuck: bool = False
    lines: int = 0
    away_since: float | None = None
    moves_heard: int = 0
    spent: Spent = field(default_factory=Spent)

    @property
    def is_here(self) -> bool:
        return self.lines > 0

    def came(self) -> None:
        self.lines += 1
        self.away_since = None

    def went(self) -> None:
        self.lines -= 1
        if self.lines == 0:
            self.away_since = time.monotonic()


def name_from(typed: str) -> str:
    """A name on one line, not too long, of characters that can be seen; "" when nothing is left."""
    seen = "".join(c if unicodedata.category(c)[0] != "C" else " " for c in typed)
    return " ".join(seen.split())[:LONGEST_NAME].strip()


def is_member_id(told: str) -> bool:
    return _MEMBER_ID.fullmatch(told) is not None
