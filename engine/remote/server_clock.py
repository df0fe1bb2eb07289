"""How far a server's clock is from ours, from the times that its messages carry."""

from __future__ import annotations


class ServerClock:
    """A message comes after it was sent, by little once in a while: the smallest difference is that of the clocks."""

    def __init__(self) -> None:
        self._offset: float | None = None

    def note_message(self, sent: float, received: float) -> None:
        """A message came: `sent` by the server's clock, `received` by ours, in seconds since 1970."""
        self._offset = received - sent if self._offset is None else min(self._offset, received - sent)

    def from_ours(self, time: float) -> float:
        """A time of our clock by the server's; the same before the first message."""
        return time if self._offset is None else time - self._offset
