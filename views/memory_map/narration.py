"""What a step says: the events' own sentences, in the order a listener wants them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from engine.i18n import N_, _, blocks_counted, tokens_counted
from engine.trace import events as ev
from engine.trace.events import Event, SequenceScheduled, SlotsWritten, TokenSampled

QUIET = N_("Nothing changes.")
_ROUTINE = (SequenceScheduled, SlotsWritten, TokenSampled)
"""What every running sequence does in every step: told last, so that what is special is heard first."""


_NOTABLE = (
    ev.RequestRefused, ev.RequestPreempted, ev.BlockCopied, ev.BlocksShuffled, ev.BlockSwappedOut, ev.BlockSwappedIn,
    ev.RegionReserved, ev.RegionFreed, ev.SequenceForked, ev.BlockShared, ev.BlockAllocated, ev.SequenceFinished,
    ev.BlockFreed,
)  # fmt: skip
"""What a frame is about when several things happen in it: the first of these."""


def headline(events: Sequence[Event]) -> str:
    """The one thing that changed, and why. Without any of `_NOTABLE`: the only write, else what ran."""
    for kind in _NOTABLE:
        if found := [event for event in events if isinstance(event, kind)]:
            return _why_allocated(found, events) or found[0].describe()
    writes = [event for event in events if isinstance(event, SlotsWritten)]
    return writes[0].describe() if len(writes) == 1 else sentences(events)[0]


def _why_allocated(found: Sequence[Event], events: Sequence[Event]) -> str:
    """Why a sequence took blocks: its last one was full, or so many tokens need them. Nothing for other events."""
    allocated = [event for event in found if isinstance(event, ev.BlockAllocated)]
    allocated = [event for event in allocated if event.seq_id == allocated[0].seq_id]
    if not allocated:
        return ""
    name = allocated[0].seq_id
    if len(allocated) > 1:
        written = [len(e.slots) for e in events if isinstance(e, SlotsWritten) and e.seq_id == name]
        facts = {"blocks": blocks_counted(len(allocated)), "tokens": tokens_counted(sum(written))}
        return _("{name} took {blocks} for {tokens}.").format(name=name, **facts) if written else ""
    if not allocated[0].logical_index:
        return ""
    return _("The last block of {name} was full, so {name} took block {block}.").format(
        name=name, block=allocated[0].block_id
    )


def sentences(events: Iterable[Event]) -> list[str]:
    """One sentence an event: the step's own first ("Step 3 ran 9 tokens."), then what is special, then routine."""
    of_step: list[str] = []
    special: list[str] = []
    routine: list[str] = []
    for event in events:
        kind = of_step if event.group == "step" else routine if isinstance(event, _ROUTINE) else special
        kind.append(event.describe())
    return of_step + special + routine or [_(QUIET)]
