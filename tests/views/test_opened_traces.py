"""A trace file from anybody: what is wrong with it is said in a sentence, and little cannot ask for much."""

from __future__ import annotations

import json
import time

import pytest

from engine import Trace
from tests.helpers.map_traces import busy
from views.server.opened_traces import MAX_SLOTS, MAX_STEPS, read_trace

POOL = {
    "type": "PoolCreated", "step": 0, "num_blocks": 2, "block_size": 4, "num_cpu_blocks": 0, "free_block_queue": [0, 1],
}  # fmt: skip
FREED = {
    "type": "BlockFreed", "step": 1, "block_id": 0, "seq_id": "A", "logical_index": 0, "ref_cnt": 0, "cached": False,
}  # fmt: skip
BEAT = {"type": "StepCompleted", "num_scheduled_tokens": 0, "num_running": 0, "num_waiting": 0, "elapsed_ms": 0.0}


def trace_of(*events: dict[str, object]) -> str:
    return json.dumps({"schema": 1, "info": {}, "events": events})


def test_an_opened_trace_has_a_frame_for_every_step() -> None:
    trace = busy()
    opened = read_trace(trace.to_json(), "mine.json")
    assert opened.trace.events == trace.events
    messages = [json.loads(text) for text in opened.frames.texts]
    assert len([m for m in messages if not m.get("amend")]) == trace.num_steps + 1
    assert opened.frames.initial_payload()["title"] == "mine.json"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("hello", "This is not a trace file: it is not JSON"),
        ("[" * 100_000, "This is not a trace file: it is not JSON"),
        ("[]", "This is not a trace file of schema 1."),
        ('{"schema": 1, "events": 3}', "A trace file needs an `info` object and an `events` list."),
        (trace_of(), "This trace is empty: it holds no event."),
        (trace_of({"type": "Exploded", "step": 0}), "Event 0: unknown event type 'Exploded'."),
        (trace_of(POOL | {"num_blocks": "2"}), "Event 0: PoolCreated.num_blocks must be a whole number"),
        (trace_of(POOL | {"block_size": 10**7}), f"a memory of {2 * 10**7} slots; the page shows at most {MAX_SLOTS}."),
        (
            trace_of({"type": "ArenaCreated", "step": 0, "num_slots": 10**9, "allocator": "x", "reservation": "y"}),
            f"a memory of {10**9} slots; the page shows at most {MAX_SLOTS}.",
        ),
        (trace_of(POOL, BEAT | {"step": 900_000}), f"This trace has 900000 steps; the page shows at most {MAX_STEPS}."),
        (trace_of(POOL, FREED), "This trace contradicts itself: step 1: BlockFreed cannot be replayed"),
    ],
)  # fmt: skip
def test_an_invalid_file_is_refused_at_once(text: str, sentence: str) -> None:
    started = time.process_time()
    with pytest.raises(ValueError) as caught:
        read_trace(text, "theirs.json")
    assert sentence in str(caught.value)
    assert time.process_time() - started < 5


def test_fields_of_unknown_size_are_checked_by_the_parser() -> None:
    with pytest.raises(ValueError, match="must be a whole number"):
        read_trace(trace_of(POOL | {"num_blocks": 1e9}), "x")
    assert isinstance(read_trace(trace_of(POOL), "x").trace, Trace)
