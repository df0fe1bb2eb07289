"""Frames lead to the fold: whoever applies them one by one sees `trace.at(step)` at every step."""

from __future__ import annotations

import json

import pytest

from course.scripted_engine import scripted_engine
from engine.config import EngineConfig
from engine.sampling_params import SamplingParams
from engine.trace.events import AllBlocksCleared, PoolCreated
from engine.trace.state import CacheState
from engine.trace.trace import Trace
from tests.helpers.map_traces import SCENES, busy, fox, two_answers
from tests.helpers.replay_frames import FrameReader, picture_of
from views.memory_map.frames import FrameStream, LabelledState, frames_payload, states_payload

SMALL_SCENES = [name for name in SCENES if name != "large"]


@pytest.mark.parametrize("scene", SMALL_SCENES)
def test_each_frame_is_the_state_after_its_step(scene: str) -> None:
    trace = SCENES[scene]()
    frames = frames_payload(trace)["frames"]
    assert [frame["step"] for frame in frames] == list(range(trace.num_steps + 1))
    reader = FrameReader()
    for frame in json.loads(json.dumps(frames)):
        reader.apply(frame)
        assert reader.picture() == picture_of(trace.at(frame["step"])), frame["step"]


def test_frames_from_the_middle_start_with_everything() -> None:
    trace = busy()
    reader = FrameReader()
    for frame in frames_payload(trace, first=9, last=14)["frames"]:
        reader.apply(frame)
        picture, expected = reader.picture(), picture_of(trace.at(frame["step"]))
        assert picture["blocks"] == expected["blocks"] and picture["seqs"] == expected["seqs"]


@pytest.mark.parametrize("scene", SMALL_SCENES)
def test_event_frames_end_at_the_same_state_with_every_sentence(scene: str) -> None:
    trace = SCENES[scene]()
    frames = frames_payload(trace, granularity="event")["frames"]
    reader = FrameReader()
    for frame in frames:
        reader.apply(frame)
    assert reader.picture() == picture_of(trace.at(trace.num_steps))
    assert sorted(s for f in frames for s in f["say"]) == sorted(e.describe() for e in trace)
    memory = {"blocks", "cpu_blocks", "regions"}
    assert all(memory & f.keys() for f in frames if "changes" in f)


def test_event_frames_of_a_copy_on_write_show_it_event_by_event() -> None:
    trace = two_answers()
    copies = [f for f in frames_payload(trace, granularity="event")["frames"] if "copied" in str(f.get("changes"))]
    (copy,) = copies
    assert copy["changes"] == [{"kind": "copied", "src": 1, "block": 2, "seq_id": "A"}]
    assert copy["say"][-1].startswith("A is about to write into shared block 1, so it copies 2 slots to block 2.")
    assert [block["id"] for block in copy["blocks"]] == [1, 2]
    assert copy["label"] == "Step 2 · 1/4"


def test_only_what_changed_is_sent() -> None:
    """A step of one sequence in a pool of 1,024 blocks tells of one block, not of all."""
    config = EngineConfig(block_size=4, num_blocks=1024)
    engine = scripted_engine(config, {"A": ["ran"] * 4})
    engine.add_request("The red fox", SamplingParams(max_tokens=4))
    while engine.has_unfinished_requests():
        engine.step()
    frames = frames_payload(engine.trace)["frames"]
    assert [[block["id"] for block in frame.get("blocks", [])] for frame in frames] == [[], [0], [0], [1], [0, 1]]
    assert len(json.dumps(frames[2])) < 600


def test_a_fork_does_not_send_its_tokens_again() -> None:
    frames = frames_payload(two_answers())["frames"]
    forked = next(entry for frame in frames for entry in frame.get("seqs", []) if entry["seq"] == 1)
    assert (forked["of"], forked["keep"], len(forked["add"])) == (0, 6, 1)


def test_labels_and_title_come_from_the_caller() -> None:
    payload = frames_payload(fox(), first=1, last=3, label=lambda step: f"{step + 2} tokens", title="Growth")
    assert [frame["label"] for frame in payload["frames"]] == ["3 tokens", "4 tokens", "5 tokens"]
    assert payload["title"] == "Growth"


def test_steps_outside_the_trace_are_named() -> None:
    with pytest.raises(IndexError, match="Steps 3 to 99 are not within this trace's 0 to 8"):
        frames_payload(fox(), first=3, last=99)


def test_the_trace_id_changes_with_the_frames_and_only_then() -> None:
    assert frames_payload(fox())["trace_id"] == frames_payload(fox())["trace_id"]
    assert frames_payload(fox())["trace_id"] != frames_payload(fox(), last=7)["trace_id"]
    assert frames_payload(fox(), trace_id="mine")["trace_id"] == "mine"


def test_scenes_need_not_follow_from_each_other() -> None:
    """A control over pool sizes: every value a state of its own, with fewer sequences as well as more."""
    states = [busy().at(9), fox().at(4), busy().at(2), two_answers().at(3)]
    payload = states_payload([LabelledState(f"{i}", state, [f"scene {i}"]) for i, state in enumerate(states)])
    reader = FrameReader()
    for frame, state in zip(payload["frames"], states, strict=True):
        reader.apply(frame)
        picture, expected = reader.picture(), picture_of(state)
        for key in ("layout", "blocks", "cpu_blocks", "arena", "seqs", "next_free"):
            assert picture[key] == expected[key], key
        assert frame["say"] == [f"scene {frame['label']}"]


def test_an_idle_step_is_a_labelled_frame() -> None:
    trace = Trace()
    trace.append(PoolCreated(0, 2, 4, 0, (0, 1)))
    trace.append(AllBlocksCleared(3))
    frames = frames_payload(trace)["frames"]
    assert [frame["say"] for frame in frames[1:3]] == [["Nothing changes."], ["Nothing changes."]]
    assert frames[3]["say"] == ["The prefix cache is emptied."]


class TestFrameStream:
    def test_a_stream_read_step_by_step_equals_the_payload(self) -> None:
        config = EngineConfig(block_size=4, num_blocks=8)
        engine = scripted_engine(config, {"A": ["ran", "far"], "B": ["sat", "down"]})
        stream = FrameStream(engine.trace)
        stream.update()
        engine.add_request("The red fox", SamplingParams(max_tokens=2))
        stream.update()
        engine.step()
        stream.update()
        engine.add_request("A grey cat", SamplingParams(max_tokens=2))
        stream.update()
        while engine.has_unfinished_requests():
            engine.step()
            stream.update()
        reader, state = FrameReader(), CacheState()
        messages = [json.loads(text) for text in stream.texts]
        for message in messages:
            reader.apply(message)
        for event in engine.trace:
            state.apply(event)
        assert reader.picture() == picture_of(state)
        frames = [message for message in messages if "amend" not in message]
        assert [frame["step"] for frame in frames] == list(range(engine.trace.num_steps + 1))
        amended = [message["step"] for message in messages if "amend" in message]
        assert amended == [0, 1]

    def test_without_new_frames_nothing_is_sent(self) -> None:
        stream = FrameStream(fox())
        assert stream.update() == stream.update() == 9

    def test_a_map_is_sent_the_frames_it_lacks(self) -> None:
        stream = FrameStream(fox(), "run-1")
        stream.update()
        sent = json.loads(stream.delta_since("run-1", 7).as_json())
        assert sent == {"trace_id": "run-1", "from": 7, "frames": [json.loads(text) for text in stream.texts[7:]]}
        assert stream.delta_since("run-1", 7).end == 9
        assert stream.delta_since("run-1", 99).texts == []
        assert stream.delta_since("an older run", 7).start == 0
        assert len(stream.delta_since(None, -3).texts) == 9
