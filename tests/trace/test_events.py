"""Every event says itself: the exact words, because screen readers, narration and exports use them."""

from __future__ import annotations

import pytest

from engine.trace.events import (
    EVENT_TYPES,
    AdmissionDeferred,
    AllBlocksCleared,
    ArenaCreated,
    BlockAllocated,
    BlockCopied,
    BlockFreed,
    BlockRemoved,
    BlockShared,
    BlocksShuffled,
    BlockStored,
    BlockSwappedIn,
    BlockSwappedOut,
    MessageReceived,
    MessagesMissed,
    PoolCreated,
    PrefixQueried,
    RegionFreed,
    RegionReserved,
    RequestAdded,
    RequestAdmitted,
    RequestFinished,
    RequestPreempted,
    RequestRefused,
    SequenceFinished,
    SequenceForked,
    SequenceScheduled,
    ServerRestarted,
    SlotsWritten,
    StepCompleted,
    TokenSampled,
    ended,
    slot_span,
    token_span,
)

SENTENCES = [
    (PoolCreated(0, 9, 4, 0, tuple(range(9))), "The pool has 9 blocks of 4: 36 slots."),
    (PoolCreated(0, 1, 1, 0, (0,)), "The pool has 1 block of 1: 1 slot."),
    (
        ArenaCreated(0, 33, "first_fit", "Oracle"),
        "Memory is one contiguous region of 33 slots, handed out by first fit; reservation rule: Oracle.",
    ),
    (RequestAdded(0, "A", (1,), ("x",), 8), "Request A arrives with 1 prompt token."),
    (
        RequestRefused(1, "F", "24 slots free, longest gap 10, need 20"),
        "Request F is refused: 24 slots free, longest gap 10, need 20.",
    ),
    (RequestRefused(1, "F", "The prompt is empty."), "Request F is refused: The prompt is empty."),
    (AdmissionDeferred(1, "B", "3 blocks free, need 4"), "Request B waits: 3 blocks free, need 4."),
    (RequestAdmitted(1, "A", "waiting"), "Request A starts."),
    (RequestAdmitted(1, "A", "swapped"), "Request A resumes."),
    (
        RequestPreempted(1, "A", "recompute", "No block is free."),
        "Request A is preempted (its keys and values will be computed again): No block is free.",
    ),
    (
        RequestPreempted(1, "A", "swap", "no block is free"),
        "Request A is preempted (swapped to CPU memory): no block is free.",
    ),
    (RequestFinished(2, "A", "length"), "Request A is done (length)."),
    (RequestFinished(2, "A", "beam_pruned"), "Request A is done (beam pruned)."),
    (PrefixQueried(1, "A", 8, 4, False), "A finds 4 of its 8 tokens in the prefix cache."),
    (PrefixQueried(1, "A", 1, 0, False), "A finds nothing of its 1 token in the prefix cache."),
    (SequenceScheduled(1, "A", 0, 7), "A runs tokens 0 to 6."),
    (SequenceScheduled(1, "A", 0, 7, 5), "A runs tokens 0 to 6 (5 again)."),
    (SequenceForked(1, "A", "A#1", "A"), "A#1 forks from A."),
    (SlotsWritten(1, "A", 4, (9,)), "A writes token 4 into slot 9."),
    (SlotsWritten(1, "A", 0, (24, 25, 26)), "A writes tokens 0 to 2 into 3 slots."),
    (SequenceFinished(1, "A", "stop"), "A ends (stop)."),
    (BlockAllocated(1, 6, "A", 0), "A takes free block 6 as its block 0."),
    (BlockShared(1, 6, "B", 0, 2, "fork"), "B points its block 0 at block 6, now shared by 2."),
    (BlockShared(1, 6, "B", 0, 1, "prefix_cache"), "B takes block 6, still cached, as its block 0."),
    (BlockFreed(1, 6, "A", 0, 1, True), "A releases block 6; 1 reference left."),
    (BlockFreed(1, 6, "A", 0, 0, True), "A frees block 6, which stays cached."),
    (BlockFreed(1, 6, "A", 0, 0, False), "A frees block 6."),
    (
        BlockStored(1, 6, 99, None, (1, 2), 2, "A", 0),
        "Block 6 is full and now cached: it can be found by its 2 tokens.",
    ),
    (BlockRemoved(1, 6, 99), "The cached content of block 6 is evicted."),
    (AllBlocksCleared(1), "The prefix cache is emptied."),
    (
        BlockStored(1, None, "ab12", None, (1, 2), 2, None, None, 0, "GPU", 0),
        "A block of 2 tokens is now cached; its place is not known.",
    ),
    (BlockRemoved(1, None, 99), "The cached content of one block is evicted; its place is not known."),
    (MessageReceived(1, 7, 0.0), "Message 7 arrives."),
    (MessageReceived(1, 7, 0.0, 2), "Message 7 of rank 2 arrives."),
    (MessagesMissed(1, 7, 7), "Message 7 never arrived: the view is partial from here on."),
    (MessagesMissed(1, 7, 9, 1), "Messages 7 to 9 of rank 1 never arrived: the view is partial from here on."),
    (ServerRestarted(1), "The server has restarted: its cache is empty, the view starts over."),
    (ServerRestarted(1, 3), "The server of rank 3 has restarted: its cache is empty, the view starts over."),
    (BlockSwappedOut(1, 6, 0, "A", 1), "A's block 1 goes from block 6 to CPU block 0."),
    (BlockSwappedIn(1, 0, 6, "A", 1), "A's block 1 comes back from CPU block 0 to block 6."),
    (BlocksShuffled(1, (0, 2, 1)), "2 blocks move in memory; every block table is updated."),
    (RegionReserved(1, "A", 0, 16, 16), "A reserves slots 0 to 15."),
    (RegionReserved(1, "A", 0, 16, 11), "A reserves slots 0 to 15, of which it asked for 11."),
    (RegionFreed(1, "A", 5, 1), "A gives back slot 5."),
    (StepCompleted(3, 12, 2, 0, 1.5), "Step 3 ran 12 tokens."),
]
"""Events whose description is one sentence, word for word."""

TWO_PART = [
    TokenSampled(1, "A", 4, 7, " fox"),
    BlockCopied(1, 1, 3, "A", 1, 2, 1),
]
"""Events that say what happened and what that leaves."""


@pytest.mark.parametrize(("event", "sentence"), SENTENCES, ids=lambda value: type(value).__name__)
def test_the_exact_sentence(event, sentence):
    assert event.describe() == sentence


def test_a_sampled_token_is_known_but_not_written():
    text = TWO_PART[0].describe()
    assert text.startswith("A chooses token 4: ' fox'")
    assert text.endswith("not written yet.")


def test_a_copy_names_both_blocks_and_the_remaining_ref_cnt():
    text = TWO_PART[1].describe()
    assert "block 1" in text
    assert "copies 2 slots to block 3" in text
    assert text.endswith("Block 1 is left with 1 reference.")


def test_every_event_type_has_a_sentence_here():
    assert {type(event).__name__ for event, _ in SENTENCES} | {type(e).__name__ for e in TWO_PART} == set(EVENT_TYPES)


@pytest.mark.parametrize("piece", ["\n", "\r\n", "\u2028", "a\tb", "\x00"])
def test_a_token_of_line_breaks_stays_on_one_line(piece):
    text = TokenSampled(1, "A", 4, 7, piece).describe()
    assert len(text.splitlines()) == 1
    assert text.endswith(".")


def test_every_event_belongs_to_a_group_that_pages_know():
    assert {event_type.group for event_type in EVENT_TYPES.values()} == {"request", "memory", "step"}


def test_ranges_of_positions_in_words():
    assert [token_span(4, 1), token_span(4, 4)] == ["token 4", "tokens 4 to 7"]
    assert [slot_span(4, 1), slot_span(4, 4)] == ["slot 4", "slots 4 to 7"]
    assert [ended("why"), ended("Why."), ended("Why?")] == ["why.", "Why.", "Why?"]
