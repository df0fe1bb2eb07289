"""One person in a room."""

from __future__ import annotations

import re
import threading
import time
import unicodedata
from dataclasses import dataclass, field

from views.room.quota import QuotaUsage

LONGEST_NAME = 24
_MEMBER_ID = re.compile(r"[A-Za-z0-9_-]{20,40}")


@dataclass
class Member:
    """`id` is the tab's secret. `num_connections`: WebSockets open now; `away_since`: when the last of them closed.

    last_move: the number of the last move received from the presenter's tab.
    refusal: why a prompt that had waited for a run was refused by it; "" once another one was sent.
    quota_lock: held while the quota is checked and used.
    """

    id: str
    name: str
    is_presenter: bool = False
    is_stuck: bool = False
    num_connections: int = 0
    away_since: float | None = None
    last_move: int = 0
    usage: QuotaUsage = field(default_factory=QuotaUsage)
    refusal: str = ""
    quota_lock: threading.Lock = field(default_factory=threading.Lock, repr=False, compare=False)

    @property
    def is_connected(self) -> bool:
        """Whether a WebSocket of theirs is open."""
        return self.num_connections > 0

    def connected(self) -> None:
        """A WebSocket of theirs has opened."""
        self.num_connections += 1
        self.away_since = None

    def disconnected(self) -> None:
        """A WebSocket of theirs has closed."""
        self.num_connections -= 1
        if self.num_connections == 0:
            self.away_since = time.monotonic()


def name_from(typed: str) -> str:
    """A name on one line, not too long, of characters that can be seen; "" when nothing is left."""
    seen = "".join(c if unicodedata.category(c)[0] != "C" else " " for c in typed)
    return " ".join(seen.split())[:LONGEST_NAME].strip()


def is_member_id(text: str) -> bool:
    """Whether it has the form of a member id."""
    return _MEMBER_ID.fullmatch(text) is not None
