"""The account of forks, copies and frees: its counts are the pool's own, before and after each thing."""

from __future__ import annotations

import pytest

from course.scripted_engine import scripted_engine
from engine import Engine, EngineConfig, SamplingParams
from engine.inspect.sharing_history import SharingEntry, sharing_history, totals_of
from engine.trace.events import BlockCopied, BlockFreed, BlockShared, SequenceFinished, SequenceForked
from tests.helpers.hash_model import hash_engine

CONFIG = EngineConfig(block_size=4, num_blocks=40, max_num_seqs=8, max_model_len=64)


def run(engine: Engine, params: SamplingParams) -> tuple[SharingEntry, ...]:
    engine.add_request([1, 2, 3, 4, 5, 6], params)
    while engine.has_unfinished_requests():
        engine.step()
    return sharing_history(engine.trace)


def test_two_samples_share_the_tail_until_the_first_one_writes() -> None:
    """Six prompt tokens in blocks of four: block 0 is full and stays shared, block 1 is copied by the first writer."""
    entries = run(hash_engine(CONFIG), SamplingParams(max_tokens=3, n=2, temperature=1.0, seed=1))
    told = [(e.step, e.kind, e.seq_id, e.block_id, e.ref_cnt_before, e.ref_cnt_after) for e in entries]
    assert told[:4] == [
        (1, "fork", "A#1", None, None, None),
        (1, "share", "A#1", 0, 1, 2),
        (1, "share", "A#1", 1, 1, 2),
        (2, "copy", "A", 1, 2, 1),
    ]
    assert [(kind, block, before, after) for _, kind, _, block, before, after in told if kind == "free"].count(
        ("free", 0, 2, 1)
    ) == 1
    assert totals_of(entries).num_to_one_reference == 1


@pytest.mark.parametrize("params", [
    SamplingParams(max_tokens=12, beam_width=3),
    SamplingParams(max_tokens=12, beam_width=4, ignore_eos=True),
    SamplingParams(max_tokens=9, n=4, temperature=1.3, seed=2),
])  # fmt: skip
def test_every_count_is_the_one_in_the_event(params: SamplingParams) -> None:
    engine = hash_engine(CONFIG)
    entries = run(engine, params)
    after: dict[str, list[int]] = {"share": [], "copy": [], "free": []}
    for event in engine.trace:
        match event:
            case BlockShared(ref_cnt=count):
                after["share"].append(count)
            case BlockCopied(src_ref_cnt=count):
                after["copy"].append(count)
            case BlockFreed(ref_cnt=count):
                after["free"].append(count)
    for kind, counts in after.items():
        assert [entry.ref_cnt_after for entry in entries if entry.kind == kind] == counts
    changes = {(e.kind, e.ref_cnt_after - e.ref_cnt_before) for e in entries if e.ref_cnt_before is not None}
    assert changes <= {("share", 1), ("copy", -1), ("free", -1), ("reuse", 1)}
    assert totals_of(entries).num_forks == sum(isinstance(event, SequenceForked) for event in engine.trace)


def test_a_pruned_beam_frees_its_blocks_for_others() -> None:
    engine = hash_engine(CONFIG)
    entries = run(engine, SamplingParams(max_tokens=16, beam_width=4, ignore_eos=True))
    pruned = [e.seq_id for e in engine.trace if isinstance(e, SequenceFinished) and e.reason == "beam_pruned"]
    assert [entry.seq_id for entry in entries if entry.kind == "prune"] == pruned
    inherited = [entry for entry in entries if entry.kind == "reuse"]
    assert inherited and all((entry.ref_cnt_before, entry.ref_cnt_after) == (0, 1) for entry in inherited)
    assert {entry.previous_owner for entry in inherited} & set(pruned)
    assert totals_of(entries).num_reused == len(inherited)


def test_a_run_without_sharing_has_only_frees() -> None:
    engine = scripted_engine(EngineConfig(block_size=4, num_blocks=9), {"A": ["one", "two"]})
    engine.add_request("The red fox", SamplingParams(max_tokens=2))
    while engine.has_unfinished_requests():
        engine.step()
    assert {entry.kind for entry in sharing_history(engine.trace)} == {"free"}
