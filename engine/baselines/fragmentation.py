"""Where the slots of a KV memory go, split as in the paper's Fig. 2, counted from a CacheState.

The kinds, after the paper's section 3.1 (a slot is counted once, and the kinds add up to the memory):

token states            slots that hold keys and values of a live request
reservation             held and still empty, but this request will use it later
internal fragmentation  held for this request, which will never use it: its reply ends before
external fragmentation  what the allocator rounded up, which is never used, and, while a request waits for an extent,
                        everything free: the waiting request cannot have it (Fig. 2: "external frag. & others")
free                    free, and anybody may have it

What will be used later follows from the length of the reply where it is known (`num_output_tokens`: replayed
arrivals). Elsewhere every slot up to the request's `max_tokens` may still be used and counts as reservation, for
internal fragmentation shows only once a reply has ended. A reply's last token has a slot in this count, as
`<eos>` has in the paper's Fig. 3, although no engine writes it.

On pages there is no external fragmentation: nothing is rounded up, and any free block fits any request. Held but
empty slots exist in the last block of a sequence only.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from engine.baselines.buddy import buddy_blocks
from engine.baselines.extent import Extent, gaps_between
from engine.trace.state import BlockState, CacheState, SequenceState

WasteKind = Literal["token_states", "reservation", "internal_fragmentation", "external_fragmentation", "free"]
KINDS: tuple[WasteKind, ...] = (
    "token_states",
    "reservation",
    "internal_fragmentation",
    "external_fragmentation",
    "free",
)


@dataclass(frozen=True, slots=True)
class Waste:
    """Slots of each kind; together they are the memory."""

    token_states: int
    reservation: int
    internal_fragmentation: int
    external_fragmentation: int
    free: int

    @property
    def num_slots(self) -> int:
        """The size of the memory: the sum over all kinds."""
        return sum(self.slots(kind) for kind in KINDS)

    @property
    def num_held(self) -> int:
        """Slots set aside for live requests, or in their blocks, without what an allocator rounded up."""
        return self.token_states + self.reservation + self.internal_fragmentation

    @property
    def num_empty(self) -> int:
        """Slots held that hold no keys and values, whether they will be used later or never."""
        return self.reservation + self.internal_fragmentation

    @property
    def percent_empty(self) -> float:
        """Empty slots as a share of the slots held, 0 to 100; 0 when nothing is held."""
        return 100 * self.num_empty / self.num_held if self.num_held else 0.0

    def slots(self, kind: WasteKind) -> int:
        """Slots of one kind."""
        return int(getattr(self, kind))

    def percent(self, kind: WasteKind) -> float:
        """Share of the memory, 0 to 100; 0 when there is no memory."""
        return 100 * self.slots(kind) / self.num_slots if self.num_slots else 0.0


PAPER_FIGURE_2: dict[str, dict[WasteKind, float]] = {
    "Max": {
        "token_states": 20.4,
        "reservation": 13.3,
        "internal_fragmentation": 57.3,
        "external_fragmentation": 8.9,
    },
    "Pow2": {
        "token_states": 26.8,
        "reservation": 17.9,
        "internal_fragmentation": 13.6,
        "external_fragmentation": 41.6,
    },
    "Oracle": {
        "token_states": 38.2,
        "reservation": 25.2,
        "internal_fragmentation": 0.0,
        "external_fragmentation": 36.6,
    },
    "vLLM": {"token_states": 96.3},
}
"""Percent of the KV memory as printed in Kwon et al. 2023, Fig. 2. Of vLLM's bar only one figure is printed."""


def waste(state: CacheState) -> Waste:
    """Count one state, contiguous or paged. Shared blocks count once."""
    return _waste_of_arena(state) if state.arena else _waste_of_pool(state)


def free_extents(state: CacheState) -> list[Extent]:
    """The free slots of an arena as the extents its allocator can choose from, in address order."""
    held = [Extent(region.start, region.num_slots) for region in state.regions.values()]
    gaps = gaps_between(held, len(state.arena))
    if state.allocator == "buddy":
        return [block for gap in gaps for block in buddy_blocks(gap)]
    return gaps


def longest_free_extent(state: CacheState) -> int:
    """The most neighbouring slots that a request could have now; 0 when nothing is free."""
    return max((extent.num_slots for extent in free_extents(state)), default=0)


def percent_fewer_held(state: CacheState, baseline: CacheState) -> float:
    """How many percent fewer slots `state` holds than `baseline`, both contiguous or paged; below 0 when it is more."""
    held = waste(baseline).num_held
    return 100 * (held - waste(state).num_held) / held if held else 0.0


def _waste_of_arena(state: CacheState) -> Waste:
    regions = state.regions.values()
    written = sum(region.num_written for region in regions)
    expected = sum(
        max(region.num_written, min(region.num_needed, _num_tokens_in_the_end(state, state.sequences[request_id])))
        for request_id, region in state.regions.items()
    )
    needed = sum(region.num_needed for region in regions)
    held = sum(region.num_slots for region in regions)
    free = len(state.arena) - held
    blocked = any(request.status == "waiting" and request.reason for request in state.requests.values())
    return Waste(
        token_states=written,
        reservation=expected - written,
        internal_fragmentation=needed - expected,
        external_fragmentation=held - needed + (free if blocked else 0),
        free=0 if blocked else free,
    )


def _waste_of_pool(state: CacheState) -> Waste:
    used = [block for block in state.blocks if block.owners]
    counts = [_count_block(state, block) for block in used]
    written, expected = sum(c[0] for c in counts), sum(c[1] for c in counts)
    held = len(used) * state.block_size
    return Waste(
        token_states=written,
        reservation=expected - written,
        internal_fragmentation=held - expected,
        external_fragmentation=0,
        free=state.num_blocks * state.block_size - held,
    )


def _count_block(state: CacheState, block: BlockState) -> tuple[int, int]:
    """Slots of a used block that are written, and that are or will be, by the furthest of its sequences."""
    written = expected = 0
    for seq_id, logical_index in block.owners.items():
        sequence, start = state.sequences[seq_id], logical_index * state.block_size
        written = max(written, sequence.num_computed_tokens - start)
        expected = max(expected, _num_tokens_in_the_end(state, sequence) - start)
    written = min(written, state.block_size)
    return written, max(written, min(expected, state.block_size))


def _num_tokens_in_the_end(state: CacheState, sequence: SequenceState) -> int:
    """Prompt and reply: as long as the reply is known to be, or else as long as it may become."""
    request = state.requests[sequence.request_id]
    known = request.num_output_tokens
    return sequence.num_prompt_tokens + (request.max_tokens if known is None else known)
