"""What the beats add up to is what the kernel returns, and every beat has its line."""

from __future__ import annotations

import math

import pytest
import torch

from engine import Engine, EngineConfig, SamplingParams
from engine.kv_store import KVStore
from engine.lab.kernel_source import kernel_lines, kernel_source
from engine.lab.kernels_eye import kernels_eye
from engine.lab.scratch import parts_maker
from tests.helpers.models import loaded


def running_engine(backend: str) -> Engine:
    """Ten prompt tokens and one more written, in blocks 6, 1, 8."""
    config = EngineConfig(
        model="tiny-random", block_size=4, num_blocks=9, free_order=(6, 1, 8), attention_backend=backend
    )
    engine = Engine(config, parts_maker(loaded("tiny-random"))(config))
    engine.add_request("0123456789", SamplingParams(max_tokens=5, ignore_eos=True))
    engine.step()
    engine.step()
    return engine


@pytest.mark.parametrize("backend", ["reference", "cpu"])
@pytest.mark.parametrize(("position", "layer", "head"), [(10, 1, 3), (10, 0, 0), (5, 1, 2), (0, 1, 1)])
def test_the_visits_agree_with_the_kernel(backend: str, position: int, layer: int, head: int) -> None:
    engine = running_engine(backend)
    view = kernels_eye(engine, "A", position, layer, head)
    assert view.backend == backend and view.kv_head == head // 2
    assert view.largest_difference < view.tolerance == 1e-4 and view.agrees
    assert [visit.block_id for visit in view.visits] == [6, 1, 8][: position // 4 + 1]
    assert [token.position for visit in view.visits for token in visit.tokens] == list(range(position + 1))
    assert sum(visit.weight for visit in view.visits) == pytest.approx(1.0, abs=1e-12)
    last = view.visits[-1]
    assert last.maximum + math.log(last.total) == pytest.approx(view.log_sum_exp, abs=1e-9)
    assert last.maximum == max(token.score for visit in view.visits for token in visit.tokens)
    assert view.visits[0].shrink == 0.0


def test_a_maximum_that_grows_shrinks_what_was_summed() -> None:
    """Key 9 is made to fit the query: the largest score comes in the last block, and the total so far shrinks."""
    engine = running_engine("reference")
    store = engine.parts.store
    assert isinstance(store, KVStore)
    query = kernels_eye(engine, "A", 10, 0, 0).query
    store.key_cache[0, 8, 1, 0] = torch.tensor(query)
    view = kernels_eye(engine, "A", 10, 0, 0)
    first, _, last = view.visits
    assert last.maximum == last.tokens[1].score > first.maximum and 0 < last.shrink < 1
    assert last.maximum + math.log(last.total) == pytest.approx(view.log_sum_exp, abs=1e-9)
    assert view.agrees


def test_looking_changes_nothing() -> None:
    engine = running_engine("cpu")
    store = engine.parts.store
    assert isinstance(store, KVStore)
    before, events = store.key_cache.clone(), len(engine.trace)
    kernels_eye(engine, "A", 7, 0, 1)
    assert store.key_cache.equal(before) and len(engine.trace) == events
    engine.check_invariants()


def test_a_key_that_changes_is_seen() -> None:
    engine = running_engine("reference")
    store = engine.parts.store
    assert isinstance(store, KVStore)
    before = kernels_eye(engine, "A", 10, 0, 0).visits[1].tokens[2]
    store.key_cache[0, 1, 2, 0] *= 3
    after = kernels_eye(engine, "A", 10, 0, 0)
    assert after.visits[1].tokens[2].score == pytest.approx(3 * before.score) and after.agrees


@pytest.mark.parametrize(("position", "layer", "head"), [(11, 0, 0), (-1, 0, 0), (0, 2, 0), (0, 0, 4)])
def test_what_is_not_there(position: int, layer: int, head: int) -> None:
    with pytest.raises(IndexError):
        kernels_eye(running_engine("reference"), "A", position, layer, head)


@pytest.mark.parametrize("backend", ["reference", "cpu", "triton"])
def test_every_beat_has_one_line(backend: str) -> None:
    lines = kernel_lines(backend)
    assert [line.beat for line in lines] == [
        "follow table", "score", "maximum", "weights", "rescale", "sum", "values", "divide",
    ]  # fmt: skip
    source = kernel_source(backend).splitlines()
    assert all(source[line.number - 1].strip() == line.text for line in lines)


@pytest.mark.embedded
def test_the_embedded_model_agrees_in_the_last_layer() -> None:
    config = EngineConfig(block_size=4, num_blocks=16)
    engine = Engine(config, parts_maker(loaded(dtype="auto"))(config))
    engine.add_request("The capital of France is", SamplingParams(max_tokens=4))
    engine.step()
    assert kernels_eye(engine, "A", 4, 29, 8).agrees
