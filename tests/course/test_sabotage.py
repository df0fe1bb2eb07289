"""Every fault makes the reply wrong, is seen in what is read, and is named by a rule."""

from __future__ import annotations

import pytest

from course.sabotage.experiment import FaultInjectionReport, run_with_fault
from course.sabotage.faults import (
    FAULTS,
    Fault,
    FreeSharedBlockEarly,
    PrefixHitCoversLastToken,
    ShiftSlot,
    SkipCopyOnWrite,
    SwapTableEntries,
)
from engine import Engine, EngineConfig, SamplingParams
from engine.inspect.scratch import components_factory, run_to_end
from engine.inspect.watched_memory import WatchedMemory
from engine.trace.events import BlockCopied, RequestPreempted
from tests.helpers.models import loaded

CONFIG = EngineConfig(model="tiny-random", block_size=4, num_blocks=24, attention_backend="reference")
PROMPT = list(b"The quick")
"""9 tokens: two full blocks and one token."""


def report_of(fault: Fault, prompt: list[int] = PROMPT) -> FaultInjectionReport:
    return run_with_fault(components_factory(loaded("tiny-random")), CONFIG, prompt, fault)


def reads(report: FaultInjectionReport, step: int) -> list[tuple[str, int, int, tuple[str, int] | None]]:
    """(who, looked for its token, in slot, found) of one step."""
    return [
        (r.seq_id, r.position, r.slot, (r.found.seq_id, r.found.position) if r.found else None)
        for r in report.wrong_reads
        if r.step == step
    ]


def test_swapped_entries() -> None:
    report = report_of(SwapTableEntries())
    assert (report.rule, report.detected_after_step) == ("read_own_tokens", 2)
    assert report.detail == "read_own_tokens: A looks for its token 0 in slot 8 and finds token 8 of A"
    # Blocks 0, 1, 2 are now read as 2, 1, 0. Step 3 writes token 10 at offset 2 of the last entry, over token 2.
    assert reads(report, 3) == [
        ("A", 0, 8, ("A", 8)), ("A", 1, 9, ("A", 9)), ("A", 2, 10, None), ("A", 3, 11, None),
        ("A", 8, 0, ("A", 0)), ("A", 9, 1, ("A", 1)),
    ]  # fmt: skip
    assert min(r.step for r in report.wrong_reads) == 3
    assert report.replies[0].first_difference is not None and report.replies[0].first_difference >= 2
    assert report.failure == ""


def test_skipped_copy_on_write() -> None:
    report = report_of(SkipCopyOnWrite())
    assert (report.rule, report.detected_after_step) == ("write_in_own_block", 2)
    assert report.detail == "write_in_own_block: A wrote slot 9 of a block referenced by A and A#1"
    assert reads(report, 2) == [("A", 9, 9, ("A#1", 9))]
    assert [reply.healthy.seq_id for reply in report.replies] == ["A", "A#1"]
    assert report.replies[0].first_difference is not None


def test_shared_block_freed_early() -> None:
    report = report_of(FreeSharedBlockEarly())
    assert (report.rule, report.detected_after_step) == ("ref_cnt", 2)
    assert report.detail == "ref_cnt: block 0 has ref_cnt 0, and 2 tables reference it"
    assert reads(report, 3) == [
        (seq_id, position, position, ("B", position)) for seq_id in ("A", "A#1") for position in range(4)
    ]
    assert report.replies[0].first_difference is not None and report.replies[1].first_difference is not None
    assert report.last_drawable_step == 2
    assert report.failure == "Block 0 is free already."


def test_shifted_slot() -> None:
    report = report_of(ShiftSlot())
    assert (report.rule, report.detected_after_step) == ("memory_follows_log", 3)
    assert report.detail == "memory_follows_log: slots [11] changed, and no event says so"
    assert reads(report, 3) == [("A", 10, 10, None)]
    assert reads(report, 4) == [("A", 10, 10, None), ("A", 11, 11, ("A", 10))]
    assert report.is_reply_wrong


def test_prefix_hit_that_covers_the_last_token() -> None:
    report = report_of(PrefixHitCoversLastToken())
    assert (report.rule, report.detected_after_step) == ("token_to_run", 3)
    assert report.detail.startswith("token_to_run: B has 8 of its 8 tokens computed")
    first, second = report.replies
    assert first.first_difference is None and len(first.faulty.token_ids) == 12
    assert second.faulty.token_ids == () and second.first_difference == 0
    assert len(second.healthy.token_ids) == 12 and not second.faulty.is_complete


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: type(fault).__name__)
@pytest.mark.parametrize("length", [5, 8, 11, 12])
def test_at_any_length_the_reply_is_wrong_and_an_invariant_fails(fault: Fault, length: int) -> None:
    report = report_of(fault, list(b"abcdefghijkl")[:length])
    assert report.is_reply_wrong
    assert report.rule
    assert report.detected_after_step <= report.inject_after + 3


@pytest.mark.parametrize("fault", [SwapTableEntries(), FreeSharedBlockEarly()], ids=lambda fault: type(fault).__name__)
def test_a_prompt_too_short_is_refused(fault: Fault) -> None:
    with pytest.raises(ValueError, match="This experiment needs a prompt"):
        report_of(fault, PROMPT[:1])


def test_blocks_of_one_slot_cannot_be_half_filled() -> None:
    config = EngineConfig(model="tiny-random", block_size=1, num_blocks=64, attention_backend="reference")
    for fault in (SwapTableEntries(), SkipCopyOnWrite()):
        with pytest.raises(ValueError, match="at least 2 slots"):
            run_with_fault(components_factory(loaded("tiny-random")), config, PROMPT, fault)


@pytest.mark.parametrize("caching", [True, False])
def test_an_unmodified_engine_reads_nothing_wrong(caching: bool) -> None:
    """Copies on write, preemption and prefix hits move data about, and the watch follows them all."""
    config = EngineConfig(
        model="tiny-random", block_size=4, num_blocks=13, enable_prefix_caching=caching, attention_backend="reference"
    )
    watch = WatchedMemory(components_factory(loaded("tiny-random"))(config))
    engine = Engine(config, watch.components)
    params = SamplingParams(max_tokens=12, ignore_eos=True, n=2, temperature=1.0)
    for _ in range(2):
        engine.add_request(PROMPT, params)
        engine.step()
    assert run_to_end(engine)
    kinds = {type(event) for event in engine.trace}
    assert {BlockCopied, RequestPreempted} <= kinds
    assert watch.wrong_reads == []
