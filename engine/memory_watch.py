"""Whether memory changes where the log says it does, and nowhere else.

The log is written by those who decide; the tensors are written by kernels. This watch holds one against the other
by a fingerprint a slot, so a kernel that writes into the wrong slot is caught even when every table is right.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol, runtime_checkable

from engine.events import BlockCopied, BlocksShuffled, BlockSwappedIn, Event, SlotsWritten


@runtime_checkable
class HasFingerprints(Protocol):
    """A memory that can say, slot by slot, whether it is what it was."""

    def fingerprints(self) -> list[int]:
        """One number a slot: the same data, the same number."""
        ...


class MemoryWatch:
    """Remembers the fingerprints of the last look, and which slots the log has named since."""

    def __init__(self, store: HasFingerprints, block_size: int) -> None:
        self.store = store
        self.block_size = block_size
        self._known: list[int | None] = []
        """What each slot must still hold; None where the log says that it was written. Empty before the first look."""

    def note(self, event: Event) -> None:
        """Follow one event of the log."""
        if not self._known:
            return
        if isinstance(event, SlotsWritten):
            self._forget(event.slots)
        elif isinstance(event, BlockCopied):
            self._forget(self._slots_of(event.dst_block_id))
        elif isinstance(event, BlockSwappedIn):
            self._forget(self._slots_of(event.block_id))
        elif isinstance(event, BlocksShuffled):
            old = self._known
            self._known = list(old)
            for source, target in enumerate(event.permutation):
                for offset in range(self.block_size):
                    self._known[target * self.block_size + offset] = old[source * self.block_size + offset]

    def changed_slots(self) -> list[int]:
        """Slots that changed since the last look although the log does not say so. This look is the next one's last."""
        now = self.store.fingerprints()
        changed = [slot for slot, known in enumerate(self._known) if known is not None and known != now[slot]]
        self._known = list(now)
        return changed

    def _forget(self, slots: Iterable[int]) -> None:
        for slot in slots:
            self._known[slot] = None

    def _slots_of(self, block_id: int) -> range:
        return range(block_id * self.block_size, (block_id + 1) * self.block_size)
