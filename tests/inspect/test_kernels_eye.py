"""The parts of online softmax add up to what the kernel returns, and each has its line of source."""

from __future__ import annotations

import math
from collections.abc import Mapping

import pytest
import torch
from numba.core import types
from torch._subclasses.fake_tensor import FakeTensorMode

from engine import Engine, EngineConfig, SamplingParams
from engine.inspect.kernel_source import kernel_lines, kernel_source
from engine.inspect.kernels_eye import _rows, kernels_eye
from engine.inspect.scratch import components_factory
from engine.model.kv_store import KVStore
from kernels.paged_attention import cpu_decode, cpu_decode_avx512, outline
from tests.helpers.models import loaded


def running_engine(backend: str) -> Engine:
    """Ten prompt tokens and one more written, in blocks 6, 1, 8."""
    config = EngineConfig(
        model="tiny-random", block_size=4, num_blocks=9, free_order=(6, 1, 8), attention_backend=backend
    )
    engine = Engine(config, components_factory(loaded("tiny-random"))(config))
    engine.add_request("0123456789", SamplingParams(max_tokens=5, ignore_eos=True))
    engine.step()
    engine.step()
    return engine


@pytest.mark.parametrize("backend", ["reference", "cpu"])
@pytest.mark.parametrize(("position", "layer", "head"), [(10, 1, 3), (10, 0, 0), (5, 1, 2), (0, 1, 1)])
def test_the_recorded_visits_equal_the_kernels_output(backend: str, position: int, layer: int, head: int) -> None:
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


def test_a_new_maximum_rescales_the_sums() -> None:
    """Key 9 is made to fit the query: the largest score comes in the last block, and the total so far shrinks."""
    engine = running_engine("reference")
    store = engine.components.store
    assert isinstance(store, KVStore)
    query = kernels_eye(engine, "A", 10, 0, 0).query
    store.key_cache[0, 8, 1, 0] = torch.tensor(query)
    view = kernels_eye(engine, "A", 10, 0, 0)
    first, _, last = view.visits
    assert last.maximum == last.tokens[1].score > first.maximum and 0 < last.shrink < 1
    assert last.maximum + math.log(last.total) == pytest.approx(view.log_sum_exp, abs=1e-9)
    assert view.agrees


def test_inspection_changes_nothing() -> None:
    engine = running_engine("cpu")
    store = engine.components.store
    assert isinstance(store, KVStore)
    before, events = store.key_cache.clone(), len(engine.trace)
    kernels_eye(engine, "A", 7, 0, 1)
    assert store.key_cache.equal(before) and len(engine.trace) == events
    engine.check_invariants()


def test_a_changed_key_changes_the_view() -> None:
    engine = running_engine("reference")
    store = engine.components.store
    assert isinstance(store, KVStore)
    before = kernels_eye(engine, "A", 10, 0, 0).visits[1].tokens[2]
    store.key_cache[0, 1, 2, 0] *= 3
    after = kernels_eye(engine, "A", 10, 0, 0)
    assert after.visits[1].tokens[2].score == pytest.approx(3 * before.score) and after.agrees


@pytest.mark.parametrize(("position", "layer", "head"), [(11, 0, 0), (-1, 0, 0), (0, 2, 0), (0, 0, 4)])
def test_a_location_that_does_not_exist_is_refused(position: int, layer: int, head: int) -> None:
    with pytest.raises(IndexError):
        kernels_eye(running_engine("reference"), "A", position, layer, head)


@pytest.mark.parametrize("places", [outline.REFERENCE, outline.CPU, outline.CPU_IN_REGISTERS, outline.TRITON])
def test_every_softmax_part_has_one_source_line(places: Mapping[outline.SoftmaxPart, outline.Place]) -> None:
    lines = kernel_lines(places)
    assert [line.part for line in lines] == [
        "follow table", "score", "maximum", "weights", "rescale", "sum", "values", "divide",
    ]  # fmt: skip
    for line in lines:
        source = kernel_source(line.file.rpartition("/")[2]).splitlines()
        assert source[line.number - 1].strip() == line.text
        defined = max(n for n, text in enumerate(source[: line.number]) if text.startswith("def "))
        assert source[defined].startswith(f"def {line.function}(")


@pytest.mark.parametrize(
    ("is_wide", "head_dim", "file", "score", "values"),
    [
        (True, 64, "cpu_decode_avx512.py", "score_strip", "add_value_rows"),
        (True, 32, "cpu_decode.py", "_score", "_add_values"),
        (False, 64, "cpu_decode.py", "_score", "_add_values"),
    ],
)
def test_the_lines_shown_are_those_that_run_here(
    is_wide: bool, head_dim: int, file: str, score: str, values: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Wide registers have loops of their own for one size of a head; everywhere else those of cpu_decode.py run."""
    monkeypatch.setattr(cpu_decode_avx512, "has_wide_registers", lambda: is_wide)
    monkeypatch.setattr(cpu_decode, "has_wide_registers", lambda: is_wide)
    compiled = cpu_decode._select(types.Array(types.uint16, 1, "C"), True, True, False)
    assert compiled is is_wide and cpu_decode_avx512.HEAD_DIM == 64
    shown = outline.cpu_outline(torch.empty(1, 4, 1, head_dim), 1).places
    assert (shown["score"][:2], shown["values"][:2]) == ((file, score), (file, values))


@pytest.mark.parametrize(("backend", "keys"), [("reference", None), ("cpu", 64)])
def test_keys_at_once_is_the_kernels_chunk(backend: str, keys: int | None) -> None:
    assert kernels_eye(running_engine(backend), "A", 10, 0, 0).keys_at_once == keys


@pytest.mark.embedded
@pytest.mark.slow
def test_the_last_layer_of_the_embedded_model_equals_the_kernel() -> None:
    config = EngineConfig(block_size=4, num_blocks=16)
    engine = Engine(config, components_factory(loaded(dtype="auto"))(config))
    engine.add_request("The capital of France is", SamplingParams(max_tokens=4))
    engine.step()
    view = kernels_eye(engine, "A", 4, 29, 8)
    assert view.agrees
    in_registers = {line.part for line in view.source if line.file.endswith("cpu_decode_avx512.py")}
    assert in_registers == ({"score", "values"} if cpu_decode_avx512.has_wide_registers() else set())


def test_gpu_tensors_are_read_on_the_cpu() -> None:
    """Weights are worked out on the CPU: a product with values on a GPU raises."""
    torch._C._ensureCUDADeviceGuardSet()
    with FakeTensorMode(allow_non_fake_inputs=True):
        rows = _rows(torch.empty(4, 4, 2, 16, device="cuda:0"), [4, 9], 1)
        assert (torch.ones(2, dtype=torch.float64) @ rows).device.type == "cpu"
