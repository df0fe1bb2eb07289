"""A real vLLM's stream: what is shown after each message is what its plain JSON stores less what it removes."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import msgspec
import pytest

from engine.remote.metrics import MetricsSample
from engine.remote.radix_tree import radix_tree_of
from engine.remote.recording import (
    RecordedStream,
    Recorder,
    RecordingError,
    history_of,
    open_recording,
    read_frames,
    samples_of,
)
from engine.trace.source import SourceFacts, facts_of
from engine.trace.trace import Trace, TraceError
from tests.helpers.kv_stream import payload, stored

ROOT = Path(__file__).resolve().parents[2]
RECORDING = (ROOT / "assets/traces/vllm-0.32-recorded.msgpack").read_bytes()
PLAIN = [json.loads(line) for line in (ROOT / "tests/data/vllm-0.32-kv-events.jsonl").read_text("utf-8").splitlines()]
NUM_BLOCKS = 37
"""Blocks stored by the 35 `BlockStored` events: some name several."""


def plain_folds() -> list[Counter[int]]:
    """Copies of each hash after 0, 1, 2 ... messages, from the JSON alone."""
    copies: Counter[int] = Counter()
    folds = [copies.copy()]
    for message in PLAIN:
        for event in message["events"]:
            change = 1 if event["type"] == "BlockStored" else -1
            copies.update(dict.fromkeys(event["block_hashes"], change))
        folds.append(+copies)
    return folds


def shown(source, step: int) -> dict[int, int]:
    [view] = source.at(step).prefix_cache.ranks.values() or [None]
    return {block_hash: block.num_copies for block_hash, block in view.blocks.items()} if view else {}


def test_the_recording_holds_what_its_description_says():
    kinds = Counter(event["type"] for message in PLAIN for event in message["events"])
    assert (len(PLAIN), kinds) == (24, {"BlockStored": 35, "BlockRemoved": 16})


@pytest.mark.parametrize("step", range(1, 25))
def test_after_each_message_the_blocks_are_stored_less_removed(step):
    assert shown(history_of(RECORDING), step) == plain_folds()[step]


def test_the_recording_is_complete():
    history = history_of(RECORDING)
    assert (history.last_step, history.num_skipped) == (24, 0)
    view = history.at(24).prefix_cache.ranks[0]
    assert (view.num_stored, view.num_removed, view.num_unknown_removed) == (NUM_BLOCKS, 16, 0)
    assert (view.num_copies, history.at(24).prefix_cache.partial_since) == (NUM_BLOCKS - 16, None)


def test_tokens_and_parents_are_those_of_the_json():
    said = {}
    for message in PLAIN:
        for event in message["events"]:
            parent = event.get("parent_block_hash")
            for index, block_hash in enumerate(event["block_hashes"] if event["type"] == "BlockStored" else []):
                said[block_hash] = (parent, tuple(event["token_ids"][index * 32 : (index + 1) * 32]))
                parent = block_hash
    view = history_of(RECORDING).at(24).prefix_cache.ranks[0]
    assert {h: (b.parent_block_hash, b.token_ids) for h, b in view.blocks.items()} == {
        h: said[h] for h in plain_folds()[24]
    }


def test_every_block_is_in_the_radix_tree_once():
    view = history_of(RECORDING).at(24).prefix_cache.ranks[0]
    tree = radix_tree_of(view)
    in_nodes = [block.block_hash for node in tree.nodes for block in node.blocks]
    assert sorted(in_nodes) == sorted(view.blocks)
    assert tree.num_in_cycles == tree.num_nodes_hidden == 0


def test_the_trace_it_becomes_opens_again_and_shows_the_same():
    source = open_recording(RECORDING, SourceFacts("recorded"))
    again = Trace.from_json(source.trace().to_json())
    assert again.num_steps == 24
    for step in range(1, 25):
        assert again.at(step).prefix_cache == source.at(step).prefix_cache
        assert shown(again, step) == plain_folds()[step]
    assert open_recording(again.to_json().encode(), SourceFacts("exported")).at(24) == again.at(24)


def test_facts_of_the_source_are_saved_with_the_trace():
    facts = SourceFacts("vLLM", model="SmolLM2", num_blocks=24)
    text = open_recording(RECORDING, facts).trace().to_json()
    assert open_recording(text.encode(), SourceFacts("a file")).facts == SourceFacts(
        "a file", is_recorded=True, model="SmolLM2", num_blocks=24
    )


@pytest.mark.parametrize("odd", [-1, 0, True, 1 << 40, "24", None, [24]])
def test_invalid_metadata_of_a_foreign_trace_is_dropped(odd):
    facts = facts_of({"model": odd if odd != "24" else 7, "server_num_blocks": odd}, "x")
    assert (facts.model, facts.num_blocks) == (None, None)


def test_unknown_block_ids_and_owners_stay_unknown():
    document = json.loads(open_recording(RECORDING, SourceFacts("recorded")).trace().to_json())
    stored = [event for event in document["events"] if event["type"] == "BlockStored"]
    assert len(stored) == NUM_BLOCKS
    assert {(e["block_id"], e["seq_id"], e["logical_index"]) for e in stored} == {(None, None, None)}


def test_the_per_second_counts_cover_every_event_once():
    seconds = history_of(RECORDING).per_second()
    assert (sum(s.num_stored for s in seconds), sum(s.num_removed for s in seconds)) == (NUM_BLOCKS, 16)
    assert seconds[-1].num_copies == NUM_BLOCKS - 16
    assert open_recording(RECORDING, SourceFacts("recorded")).per_second() == seconds


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (RECORDING[:-5], "This is not a recording: message 23, at byte"),
        (b"\x93\xc4\x01a", "This is not a recording: message 0, at byte 0, cannot be read."),
        (b"\x93\xc4\x01a\xc4\x01b\xc4\x01c", "This is not a recording: message 0 has no sequence number of 8 bytes."),
        (b"\x93\xc6\xff\xff\xff\xff", "This is not a recording: message 0, at byte 0, cannot be read."),
        (b"PK\x03\x04", "This is not a recording: message 0, at byte 0, cannot be read."),
    ],
)
def test_a_damaged_file_is_refused_with_a_reason(data, sentence):
    with pytest.raises(RecordingError) as error:
        list(read_frames(data))
    assert str(error.value).startswith(sentence)


def test_json_that_is_no_trace_is_refused_with_a_reason():
    with pytest.raises(TraceError, match=r"^This is not a trace file"):
        open_recording(b'{"a": 1}', SourceFacts("x"))


LOOKS = [
    MetricsSample(1_000.5, num_running=1.0, prefix_queries=0.0, prefix_hits=0.0, num_blocks=24, server="vLLM"),
    MetricsSample(1_001.5, kv_usage=0.5, prefix_queries=40.0, prefix_hits=30.0, num_preemptions=1.0),
]


def recorded_with_metrics(file: Path) -> bytes:
    with Recorder(file) as recorder:
        recorder.add_sample(LOOKS[0])
        recorder.add_message(0, payload(stored([1], None, [1, 2], 2), timestamp=None))
        recorder.add_sample(LOOKS[1])
        assert (recorder.num_messages, recorder.num_samples) == (1, 2)
    return file.read_bytes()


def test_metrics_are_recorded_between_the_messages_and_come_back(tmp_path):
    data = recorded_with_metrics(tmp_path / "r.msgpack")
    assert [topic for topic, _number, _payload in read_frames(data)] == [b"metrics", b"kv-events", b"metrics"]
    assert samples_of(data) == tuple(LOOKS)
    assert history_of(data).last_step == 1
    source = open_recording(data, SourceFacts("x"))
    assert isinstance(source, RecordedStream)
    assert (source.samples, source.facts.num_blocks, source.last_step) == (tuple(LOOKS), 24, 1)
    assert samples_of(RECORDING) == ()


def test_a_recorded_look_has_the_servers_time(tmp_path, monkeypatch):
    file = tmp_path / "r.msgpack"
    monkeypatch.setattr("engine.remote.recording.time.time", lambda: 1_060.25)  # our clock is a minute ahead
    with Recorder(file) as recorder:
        recorder.add_message(0, payload(stored([1], None, [1, 2], 2), timestamp=1_000.0))
        recorder.add_sample(MetricsSample(1_061.25, kv_usage=0.5))
    assert samples_of(file.read_bytes()) == (MetricsSample(1_001.0, kv_usage=0.5),)
    source = open_recording(file.read_bytes(), SourceFacts("x"))
    assert isinstance(source, RecordedStream)
    assert [(s.second, s.num_copies, s.kv_usage) for s in source.timeline()] == [(1_000, 1, None), (1_001, 1, 0.5)]


@pytest.mark.parametrize(
    "told",
    [{}, {"time": 0.0}, {"time": "x"}, {"time": float("nan")}, {"time": 5.0, "num_preemptions": float("inf")}, 3],
)
def test_a_look_that_cannot_be_read_is_refused(told):
    frames = msgspec.msgpack.encode([b"metrics", bytes(8), msgspec.msgpack.encode(told)])
    with pytest.raises(RecordingError, match=r"^Reading 0 of the metrics in this recording is none\.$"):
        samples_of(frames)
