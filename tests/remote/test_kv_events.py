"""One message: both forms of events, both kinds of hashes, and whatever else may come over the line."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.remote import kv_events
from engine.remote.history import History
from engine.remote.kv_events import MAX_BLOCKS_A_MESSAGE, MessageError, decode_payload
from engine.trace.cache_events import AllBlocksCleared, BlockRemoved, BlockStored
from tests.helpers.kv_stream import CLEARED, payload, removed, stored

STORED = BlockStored(5, None, 7, 3, (1, 2), 2, None, None, 1, "GPU", 0)


def test_an_event_encoded_as_a_map_is_read():
    batch = decode_payload(payload(stored([7], 3, [1, 2], 2, medium="GPU", group_idx=0), rank=1, timestamp=12.5), 5)
    assert (batch.timestamp, batch.rank, batch.events, batch.num_skipped) == (12.5, 1, (STORED,), 0)


def test_an_event_encoded_as_an_array_of_any_length_is_read():
    long = ["BlockStored", [7], 3, [1, 2], 2, None, "GPU", None, [None], 0, "something newer"]
    assert decode_payload(payload(long, rank=1), 5).events == (STORED,)
    short = BlockStored(5, None, 7, 3, (1, 2), 2, None, None, None, None, None)
    assert decode_payload(payload(long[:5]), 5).events == (short,)
    assert decode_payload(payload(["BlockRemoved", [7]], ["AllBlocksCleared"]), 5).events == (
        BlockRemoved(5, None, 7), AllBlocksCleared(5),
    )  # fmt: skip


def test_several_blocks_of_one_event_follow_each_other():
    first, second, third = decode_payload(payload(stored([7, 8, 9], None, [1, 2, 3, 4, 5, 6], 2)), 1).events
    assert [(e.parent_block_hash, e.token_ids) for e in (first, second, third)] == [  # type: ignore[attr-defined]
        (None, (1, 2)), (7, (3, 4)), (8, (5, 6)),
    ]  # fmt: skip


def test_hashes_may_be_bytes():
    [event] = decode_payload(payload(stored([b"\xab\x12"], b"\x01", [1], 1)), 1).events
    assert (event.block_hash, event.parent_block_hash) == ("ab12", "01")  # type: ignore[attr-defined]


def test_tokens_that_are_no_ids_are_unknown():
    [event] = decode_payload(payload(stored([7], None, [(1, 2), (2, 3)], 2)), 1).events  # type: ignore[list-item]
    assert event.token_ids == ()  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "event",
    [
        {"type": "Surprise"}, {"type": 5}, {}, [], 5, None, "BlockStored", ["BlockStored"], [["BlockStored"]],
        stored([7], 3, [1], 0), stored([7], 3, [1], -1), stored([7], 3, [1], 1 << 20), stored([7], 3, [1], True),
        stored([1.5], 3, [1], 1), stored(["x"], 3, [1], 1), stored([b"x" * 65], 3, [1], 1), stored([True], 3, [1], 1),
        {"type": "BlockStored", "block_hashes": [7], "token_ids": [1], "block_size": 1},
        {"type": "BlockRemoved", "block_hashes": 7}, {"type": "BlockRemoved"},
    ],
)  # fmt: skip
def test_a_wrong_event_is_skipped_and_its_neighbours_are_read(event):
    batch = decode_payload(payload(CLEARED, event, removed(7)), 1)
    assert batch.events == (AllBlocksCleared(1), BlockRemoved(1, None, 7))
    assert batch.num_skipped == 1


@pytest.mark.parametrize("data", [b"", b"\xc1", b"\x93", b"hello", b"\x91\xc0", b"\xff" * 100, b"\x91" * 100_000])
def test_an_invalid_message_is_refused_with_a_reason(data):
    with pytest.raises(MessageError, match=r"^The message is not "):
        decode_payload(data, 1)


@pytest.mark.parametrize("rank", [-1, 64, "0", 1.5, True])
def test_a_rank_out_of_range_is_refused(rank):
    with pytest.raises(MessageError, match=r"^The data-parallel rank is not a number from 0 to 63\.$"):
        decode_payload(payload(rank=rank), 1)


def test_blocks_of_one_message_are_bounded():
    batch = decode_payload(payload(removed(*range(MAX_BLOCKS_A_MESSAGE + 5))), 1)
    assert (len(batch.events), batch.num_skipped) == (MAX_BLOCKS_A_MESSAGE, 5)


def test_a_huge_message_is_not_decoded(monkeypatch):
    monkeypatch.setattr(kv_events, "MAX_PAYLOAD", 100)
    with pytest.raises(MessageError, match=r"^The message has 101 bytes; the limit is 100\.$"):
        decode_payload(b"\x00" * 101, 1)


@pytest.mark.parametrize("timestamp", [None, "now", 0, -5, 1e300, True])
def test_an_invalid_timestamp_is_unknown(timestamp):
    assert decode_payload(payload(timestamp=timestamp), 1).timestamp is None


leaves = st.one_of(
    st.none(), st.booleans(), st.integers(-(2**63), 2**64 - 1), st.floats(), st.text(max_size=8), st.binary(max_size=8)
)
kinds = st.sampled_from(["BlockStored", "BlockRemoved", "AllBlocksCleared", "Other", 7])
anything = st.recursive(
    leaves,
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(st.text(max_size=8), inner, max_size=4)),
    max_leaves=12,
)
hashes = st.one_of(st.integers(0, 5), st.binary(max_size=3), anything)
fields = {
    "type": kinds, "block_hashes": st.one_of(st.lists(hashes, max_size=4), anything), "parent_block_hash": hashes,
    "token_ids": st.one_of(st.lists(st.integers(-1, 9), max_size=8), anything),
    "block_size": st.one_of(st.integers(-1, 4), anything), "medium": anything, "group_idx": anything,
}  # fmt: skip
maps = st.fixed_dictionaries({}, optional=fields)
arrays = st.tuples(kinds, *list(fields.values())[1:5]).map(list)
messages = st.one_of(anything, st.tuples(anything, st.lists(st.one_of(maps, arrays, anything), max_size=4), anything))


@settings(max_examples=150)
@given(message=messages, cut=st.integers(0, 40), tail=st.binary(max_size=6))
def test_no_message_breaks_the_fold(message, cut, tail):
    data = msgspec.msgpack.encode(message)
    history = History()
    history.add_message(0, data)
    history.add_message(1, data[: max(len(data) - cut, 0)] + tail)
    history.add_message(2, payload(stored([99], None, [1], 1)))
    assert history.at(history.last_step).prefix_cache.of(None).blocks[99].token_ids == (1,)
    assert history.trace().num_steps == history.last_step


@settings(max_examples=100)
@given(data=st.binary(max_size=200))
def test_no_bytes_break_the_fold(data):
    history = History()
    history.add_message(0, data)
    assert history.last_step + history.num_skipped >= 1
