"""Decode steps as CUDA graphs, with recording and replay emulated on the CPU: what must hold on a card as well."""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from engine import Engine, EngineConfig, SamplingParams
from engine.components import build_components
from engine.model.cuda_graphs import CUDA_LOCK, StaticBatch, _Recorded, captured_widths, lock_of
from engine.model.kv_store import KVStore
from engine.runner import ModelRunner
from engine.sampler import LogitsSampler
from engine.scheduler import ScheduledSequence
from engine.trace.events import SequenceScheduled
from kernels.argmax_logsumexp.reference import argmax_logsumexp
from tests.helpers.emulated_graphs import EmulatedGraphs, FailsOnce, emulated_engine
from tests.helpers.models import Item, Tokens, loaded

CONFIG = EngineConfig(
    model="tiny-random", block_size=4, num_blocks=40, max_model_len=64, attention_backend="reference", dtype="float32"
)
PROMPTS = ["The red fox", "é日", "a b c d e"]
PARAMS = SamplingParams(max_tokens=10, ignore_eos=True)


def texts_of(engine: Engine) -> list[tuple[int, ...]]:
    return [tuple(output.outputs[0].token_ids) for output in engine.generate(PROMPTS, PARAMS)]


@pytest.fixture(scope="module")
def eager() -> list[tuple[int, ...]]:
    """The tokens without graphs."""
    engine, _ = emulated_engine(CONFIG, record_after=10**6)
    return texts_of(engine)


def test_replayed_steps_give_the_tokens_of_eager_ones(eager: list[tuple[int, ...]]) -> None:
    engine, graphs = emulated_engine(CONFIG)
    assert texts_of(engine) == eager
    assert graphs.num_replays == PARAMS.max_tokens - 1, "all steps but the prefill"


def test_a_batch_size_is_recorded_when_it_comes_up_for_the_nth_time(eager: list[tuple[int, ...]]) -> None:
    """Recording costs more than the few steps of a lesson's engine are worth."""
    engine, graphs = emulated_engine(CONFIG, record_after=7)
    assert texts_of(engine) == eager
    assert graphs.num_replays == (PARAMS.max_tokens - 1) - 6


class Noted(EmulatedGraphs):
    """Notes the sizes in the order of their recordings."""

    def _record(self, batch: StaticBatch) -> _Recorded:
        self.recorded_sizes = [*getattr(self, "recorded_sizes", []), len(batch.inputs.seq_lens)]
        return super()._record(batch)


def test_a_server_records_every_size_at_its_start_the_largest_first_and_writes_no_slot(
    eager: list[tuple[int, ...]],
) -> None:
    engine, graphs = emulated_engine(CONFIG, Noted, record_after=10**6)
    runner, store = engine.components.runner, engine.components.store
    assert isinstance(runner, ModelRunner) and isinstance(store, KVStore) and isinstance(graphs, Noted)
    runner.capture_model()
    assert graphs.recorded_sizes == [8, 4, 2, 1]
    assert not store.key_cache.any() and not store.value_cache.any()
    assert texts_of(engine) == eager
    assert graphs.num_replays == PARAMS.max_tokens - 1 and len(graphs.recorded_sizes) == 4
    runner.capture_model()
    assert len(graphs.recorded_sizes) == 4, "each once"


def test_after_a_failed_capture_no_further_size_is_tried() -> None:
    engine, graphs = emulated_engine(CONFIG, CannotRecord)
    runner = engine.components.runner
    assert isinstance(runner, ModelRunner) and isinstance(graphs, CannotRecord)
    runner.capture_model()
    assert (graphs.num_tries, graphs.has_failed) == (1, True)


def test_graphs_of_all_sizes_write_their_logits_into_the_same_memory() -> None:
    """36 sizes of a vocabulary of 128,000 would keep 2 GB otherwise."""
    engine, graphs = emulated_engine(CONFIG)
    runner = engine.components.runner
    assert isinstance(runner, ModelRunner)
    runner.capture_model()
    recorded = graphs._recorded.values()
    assert {graph.logits.data_ptr() for graph in recorded} == {graphs._logits_buffer(1).data_ptr()}
    assert sorted(len(graph.logits) for graph in recorded) == [1, 2, 4, 8]


def test_after_a_fault_every_request_gets_its_own_logits(eager: list[tuple[int, ...]]) -> None:
    """The batch runs one by one, and each run writes its logits where the one before it wrote its own."""
    engine, _ = emulated_engine(CONFIG)
    runner = engine.components.runner
    assert isinstance(runner, ModelRunner)
    engine = Engine(CONFIG, replace(engine.components, runner=FailsOnce(runner, at=4)))
    assert texts_of(engine) == eager


def test_a_replaced_backend_is_not_bypassed_by_what_was_recorded_before() -> None:
    engine, graphs = emulated_engine(CONFIG)
    store = engine.components.store
    assert isinstance(store, KVStore)
    for prompt in PROMPTS:
        engine.add_request(prompt, PARAMS)
    for _ in range(3):
        engine.step()
    assert graphs.num_replays == 2
    own, calls = store.backend, 0

    def counted(
        qkv: Tensor, cos: Tensor, sin: Tensor, key_cache: Tensor, value_cache: Tensor, slot_mapping: Tensor
    ) -> Tensor:
        nonlocal calls
        calls += 1
        return own.rotary_write_kv(qkv, cos, sin, key_cache, value_cache, slot_mapping)

    store.backend = replace(own, rotary_write_kv=counted)
    engine.step()
    assert (calls, graphs.num_replays) == (2, 2), "one call a layer, and no replay"
    store.backend = own
    engine.step()
    assert graphs.num_replays == 3


class CannotRecord(EmulatedGraphs):
    num_tries = 0

    def _record(self, batch: StaticBatch) -> _Recorded:
        self.num_tries += 1
        raise RuntimeError("operation not permitted when stream is capturing")


def test_a_failed_capture_falls_back_to_eager_permanently(
    eager: list[tuple[int, ...]], caplog: pytest.LogCaptureFixture
) -> None:
    engine, graphs = emulated_engine(CONFIG, CannotRecord)
    with caplog.at_level(logging.ERROR):
        assert texts_of(engine) == eager
    assert isinstance(graphs, CannotRecord)
    assert (graphs.num_tries, graphs.has_failed, graphs.num_replays) == (1, True, 0)
    messages = [record.getMessage() for record in caplog.records]
    assert messages == ["a CUDA graph of 4 sequences cannot be recorded; all steps run eagerly from now on"]


def test_greedy_sampling_uses_the_graph_unless_logits_were_changed(eager: list[tuple[int, ...]]) -> None:
    engine, graphs = emulated_engine(CONFIG)
    sampler, chosen = engine.components.sampler, []
    assert isinstance(sampler, LogitsSampler)
    own = graphs.argmax_logsumexp

    def watched(logits: Tensor) -> Tensor:
        choice = own(logits)
        assert torch.equal(choice, argmax_logsumexp(logits))
        chosen.append(choice.data_ptr() in [recorded.choice.data_ptr() for recorded in graphs._recorded.values()])
        return choice

    sampler._argmax_logsumexp = watched
    assert texts_of(engine) == eager
    assert chosen == [False] + [True] * (PARAMS.max_tokens - 1), "all steps but the prefill"
    runner = engine.components.runner
    logits = runner.run([Item(Tokens([1, 2, 3]), 2, 1, [0])])  # type: ignore[list-item]
    before = own(logits).clone()
    logits[0, 0] = 1e6
    assert own(logits)[0, 0] == 0 != before[0, 0]
    assert own(logits.clone())[0, 0] == 0


CHUNKED = replace(CONFIG, max_num_batched_tokens=8)
LATE = "a long prompt that comes in while the others decode"


def texts_with_a_late_prompt(engine: Engine, graphs: EmulatedGraphs) -> tuple[list[tuple[int, ...]], list[int]]:
    """The tokens of all requests, and how many graphs each step replayed that computed a chunk and decoded, too."""
    for prompt in PROMPTS:
        engine.add_request(prompt, replace(PARAMS, max_tokens=24))
    for _ in range(8):
        engine.step()
    engine.add_request(LATE, PARAMS)
    replays = []
    while engine.has_unfinished_requests():
        before = graphs.num_replays
        engine.step()
        scheduled = engine.trace.events_of(engine.trace.step)
        counts = [event.num_new_tokens for event in scheduled if isinstance(event, SequenceScheduled)]
        if 1 in counts and max(counts) > 1:
            replays.append(graphs.num_replays - before)
    return [tuple(engine.output(group.request_id).outputs[0].token_ids) for group in engine.groups], replays


def test_in_a_mixed_step_the_decodes_are_replayed_and_the_chunk_runs_eagerly() -> None:
    expected, none = texts_with_a_late_prompt(*emulated_engine(CHUNKED, record_after=10**6))
    texts, replays = texts_with_a_late_prompt(*emulated_engine(CHUNKED))
    assert texts == expected
    assert len(none) >= 10 and not any(none)
    assert replays == [1] * len(none)


def test_rows_of_a_split_step_come_in_the_order_of_the_items() -> None:
    """A decode before and behind a chunk whose next token is wanted, and one of which nothing is."""
    engine, graphs = emulated_engine(CONFIG)
    runner, store = engine.components.runner, engine.components.store
    assert isinstance(runner, ModelRunner) and isinstance(store, KVStore)
    eager = ModelRunner(runner.model, store)
    a, b, c, d = Tokens([1, 2, 3]), Tokens([4, 5, 6, 7, 8]), Tokens([9, 10]), Tokens([11, 12, 13, 14])
    eager.run([Item(a, 0, 2, [0]), Item(c, 0, 1, [1])])
    runner.run([Item(a, 2, 1, [0]), Item(c, 1, 1, [1])])
    step = [Item(a, 2, 1, [0]), Item(b, 0, 5, [2, 3]), Item(d, 0, 2, [4], needs_logits=False), Item(c, 1, 1, [1])]
    replays = graphs.num_replays
    split, whole = runner.run(step), eager.run(step)
    assert graphs.num_replays == replays + 1
    torch.testing.assert_close(split, whole, rtol=0, atol=1e-5)
    without = [step[0], step[2]]
    torch.testing.assert_close(runner.run(without), eager.run(without), rtol=0, atol=1e-5)


def test_long_block_tables_have_separate_graphs() -> None:
    """Up to 512 keys attention needs no second kernel, and a graph splits for the longest sequence it can hold."""
    assert captured_widths(512, 16) == [32]
    assert captured_widths(100, 16) == [7]
    assert captured_widths(2000, 16) == [32, 125]
    assert captured_widths(2000, 5) == [103, 400]
    engine, graphs = emulated_engine(replace(CONFIG, max_model_len=600, num_blocks=200))
    [output] = engine.generate([[7] * 508], SamplingParams(max_tokens=8, ignore_eos=True))
    reference, _ = emulated_engine(replace(CONFIG, max_model_len=600, num_blocks=200), record_after=10**6)
    assert reference.generate([[7] * 508], SamplingParams(max_tokens=8, ignore_eos=True)) == [output]
    assert sorted(graphs._recorded) == [(1, 128), (1, 150)]


class Streams:
    """torch.cuda's streams, without a card: a capture that fails leaves its own stream current, as torch's does."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.current: object = "the caller's"
        for name, replacement in {
            "current_stream": lambda: Stream(self.current),
            "set_stream": lambda stream: setattr(self, "current", stream.name),
            "Stream": lambda: Stream("the capture's"),
            "stream": lambda _stream: nullcontext(),
            "graph_pool_handle": lambda: None,
            "CUDAGraph": lambda: None,
            "graph": self.capture,
        }.items():
            monkeypatch.setattr(torch.cuda, name, replacement)

    def capture(self, _graph: object, *, stream: Stream, capture_error_mode: str, **_options: object) -> object:
        assert capture_error_mode == "thread_local", "a loader in another thread may allocate meanwhile"
        self.current = stream.name
        raise RuntimeError("the capture was invalidated")


class Stream:
    def __init__(self, name: object) -> None:
        self.name = name

    def wait_stream(self, _other: Stream) -> None: ...


def test_a_failed_capture_restores_the_callers_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    from engine.model.cuda_graphs import DecodeGraphs

    engine, graphs = emulated_engine(CONFIG)
    streams = Streams(monkeypatch)
    monkeypatch.setattr(EmulatedGraphs, "_record", DecodeGraphs._record)
    texts_of(engine)
    assert graphs.has_failed and streams.current == "the caller's"


def another_thread_gets_the_lock() -> bool:
    taken: list[bool] = []
    other = threading.Thread(target=lambda: taken.append(CUDA_LOCK.acquire(blocking=False)))
    other.start()
    other.join()
    return taken[0]


def test_while_one_thread_records_or_replays_no_other_one_runs_a_step() -> None:
    let_in: list[bool] = []

    class Watched(EmulatedGraphs):
        def _logits(self, batch: StaticBatch) -> Tensor:
            let_in.append(another_thread_gets_the_lock())
            return super()._logits(batch)

    engine, _ = emulated_engine(CONFIG, Watched)
    texts_of(engine)
    assert let_in == [False]
    assert CUDA_LOCK.acquire(blocking=False)
    CUDA_LOCK.release()


def test_every_step_on_a_gpu_takes_the_lock_and_none_on_the_cpu() -> None:
    assert lock_of(torch.device("cuda")) is CUDA_LOCK
    assert lock_of(torch.device("cpu")) is not CUDA_LOCK
    model = loaded("tiny-random").model

    class Eager(ModelRunner):
        def prepare(self, items: Sequence[ScheduledSequence]) -> object:  # type: ignore[override]
            raise LookupError(another_thread_gets_the_lock())

    store = EngineStore()
    with pytest.raises(LookupError) as seen:
        Eager(replace(model, device=torch.device("cuda")), store).run([])  # type: ignore[arg-type]
    assert seen.value.args == (False,)


def test_kernels_are_tried_while_no_other_engine_records(monkeypatch: pytest.MonkeyPatch) -> None:
    def select(*_arguments: object) -> None:
        raise LookupError(another_thread_gets_the_lock())

    monkeypatch.setattr("kernels.backend.select_backend", select)
    on_gpu = replace(loaded("tiny-random").model, device=torch.device("cuda"))
    with pytest.raises(LookupError) as seen:
        build_components(replace(CONFIG, attention_backend="auto"), replace(loaded("tiny-random"), model=on_gpu))
    assert seen.value.args == (False,)


class EngineStore:
    block_size = 4
