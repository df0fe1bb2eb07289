"""The engine on a GPU that is not there: no operation over two devices, no launch with a tensor of the CPU, and no read
by the host, which would wait for the GPU, but the one that ends a step."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

import pytest
import torch

from engine import Engine, EngineConfig, SamplingParams
from engine.components import EngineComponents, build_components, sampler_of
from engine.model.kv_store import KVStore
from engine.model.linear import Float32OutputLinear, dense_lm_head
from engine.model.llama import build_model
from engine.model.weights.tiny import TINY_CONFIG, tiny_source
from engine.runner import ModelRunner
from kernels.copy_blocks.triton_kernel import copy_blocks
from kernels.paged_attention import triton_kernel as paged_attention
from tests.helpers.emulated_graphs import EmulatedGraphs
from tests.helpers.models import loaded
from tests.helpers.pretended_cuda import GPU, PretendedGpu, pretended_gpu

CONFIG = EngineConfig(
    model="tiny-random", block_size=4, num_blocks=20, max_num_batched_tokens=16, attention_backend="triton",
    preemption_mode="swap", num_cpu_blocks=20, enforce_eager=True,
)  # fmt: skip
GREEDY = SamplingParams(max_tokens=6, ignore_eos=True)
DTYPES = ("float32", "bfloat16", "float16")


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> Iterator[PretendedGpu]:
    loaded("tiny-random")  # it is kept for later tests, so it must not be made of pretended tensors
    with pretended_gpu(monkeypatch) as gpu:
        yield gpu


def components_on_gpu(config: EngineConfig, dtype: str) -> EngineComponents:
    model = build_model(TINY_CONFIG, tiny_source(getattr(torch, dtype), GPU))
    return build_components(config, replace(loaded("tiny-random"), dtype=dtype, model=model))


def test_two_devices_in_one_operation_and_a_launch_with_a_tensor_of_the_cpu_are_found(gpu: PretendedGpu) -> None:
    with pytest.raises(RuntimeError, match="on the same device, but found"):
        torch.zeros(2, device=GPU) + torch.zeros(2)
    with pytest.raises(AssertionError, match=r"arguments \[1\] of decode_kernel are not on the GPU"):
        paged_attention.__dict__["decode_kernel"][(1,)](torch.zeros(2, device=GPU), torch.zeros(2))
    assert gpu.host_reads == []
    torch.zeros(2, 3, device=GPU).cpu()
    assert bool(torch.zeros(3, device=GPU).isfinite().all())
    assert gpu.host_reads == [(2, 3), ()]


@pytest.mark.parametrize("dtype", DTYPES)
def test_prompts_samples_beams_forks_and_swaps(gpu: PretendedGpu, dtype: str) -> None:
    engine = Engine(CONFIG, components_on_gpu(CONFIG, dtype))
    engine.add_request("The red fox", GREEDY)
    engine.add_request("é日", replace(GREEDY, n=2, temperature=1.0, top_p=0.9, top_k=5, seed=4))
    engine.add_request("a b c d e", SamplingParams(max_tokens=5, beam_width=2))
    while engine.has_unfinished_requests():
        engine.step()
        engine.check_invariants()
        if engine.trace.step == 3:
            engine.preempt_request("A")
    assert [engine.output(name).error for name in "ABC"] == [None] * 3
    assert len(engine.output("A").outputs[0].token_ids) == 6
    names = Counter(gpu.names())
    assert names["rotary_write_kv_kernel"] == names["decode_kernel"] == 2 * engine.trace.step, "one a layer and step"
    assert 0 < names["prefill_kernel"] < names["decode_kernel"]
    assert names["copy_blocks_kernel"] > 0


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_step_waits_for_the_gpu_once(gpu: PretendedGpu, dtype: str) -> None:
    engine = Engine(CONFIG, components_on_gpu(CONFIG, dtype))
    engine.add_request("The red fox", GREEDY)
    engine.add_request("é日", replace(GREEDY, temperature=1.0, top_p=0.9, seed=4))
    while engine.has_unfinished_requests():
        before = len(gpu.host_reads)
        engine.step()
        assert len(gpu.host_reads) - before == 1


def test_a_swap_crosses_the_bus_once_for_all_layers(gpu: PretendedGpu) -> None:
    store = components_on_gpu(CONFIG, "bfloat16").store
    assert isinstance(store, KVStore)
    store.swap_out([(5, 0), (2, 3)])
    assert gpu.host_reads == [(2, 2, 4, 2, 16)] * 2, "keys and values, each [num_layers, blocks, ...]"
    store.swap_in([(0, 5)])
    store.permute(list(range(20)))
    assert len(gpu.host_reads) == 2
    assert store.fingerprints() == [0] * 80


def test_a_replayed_step_waits_for_the_gpu_once(gpu: PretendedGpu) -> None:
    parts = components_on_gpu(CONFIG, "bfloat16")
    assert isinstance(parts.runner, ModelRunner) and isinstance(parts.store, KVStore)
    graphs = EmulatedGraphs(parts.runner.model, parts.store, 8, 64, record_after=1)
    runner, sampler = ModelRunner(parts.runner.model, parts.store, graphs), sampler_of(graphs, parts.store.backend)
    engine = Engine(CONFIG, replace(parts, runner=runner, sampler=sampler))
    for prompt in ("The red fox", "é日", "a"):
        engine.add_request(prompt, GREEDY)
    while engine.has_unfinished_requests():
        before = len(gpu.host_reads)
        engine.step()
        assert len(gpu.host_reads) - before == 1
    assert graphs.num_replays >= 5
    [logits] = {graph.logits.device for graph in graphs._recorded.values()}
    assert logits == GPU


@pytest.mark.usefixtures("gpu")
def test_logits_of_narrow_weights_come_in_float32_from_the_product_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """bfloat16 steps by 0.125 near 20: rounded logits tie, and the lower token id wins."""
    for dtype in (torch.bfloat16, torch.float16):
        head = dense_lm_head(torch.zeros(30, 8, dtype=dtype, device=GPU), torch.zeros(30, dtype=dtype, device=GPU))
        assert isinstance(head, Float32OutputLinear)
        assert head(torch.zeros(2, 8, dtype=dtype, device=GPU)).dtype == torch.float32
    assert not isinstance(dense_lm_head(torch.zeros(30, 8, device=GPU)), Float32OutputLinear)
    monkeypatch.setattr(torch.version, "hip", "7.2")
    assert not isinstance(dense_lm_head(torch.zeros(30, 8, dtype=torch.float16, device=GPU)), Float32OutputLinear)


def test_logits_keep_what_bfloat16_cannot_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "mm", lambda a, b, out_dtype: a.to(out_dtype) @ b.to(out_dtype))
    random = torch.Generator().manual_seed(0)
    weight, hidden = torch.randn(50, 64, generator=random).bfloat16(), torch.randn(3, 64, generator=random).bfloat16()
    logits = Float32OutputLinear(weight)(hidden)
    torch.testing.assert_close(logits, hidden.float() @ weight.float().T)
    assert not torch.equal(logits, logits.bfloat16().float())


def test_the_addresses_of_the_caches_are_sent_to_the_gpu_once(gpu: PretendedGpu) -> None:
    caches = [torch.zeros(4, 2, 2, 16, device=GPU) for _ in range(2)]
    for _ in range(2):
        copy_blocks(caches, torch.zeros(1, 2, dtype=torch.int64, device=GPU))
    first, second = (launch.arguments[0] for launch in gpu.launches)
    assert first is second


@pytest.mark.usefixtures("gpu")
def test_probabilities_are_added_up_in_float64(monkeypatch: pytest.MonkeyPatch) -> None:
    """A GPU adds one row and several rows in another order: in float32 a seed's tokens would change with the batch."""
    cumsum, added = torch.cumsum, []

    def noted(numbers: torch.Tensor, dim: int) -> torch.Tensor:
        added.append(numbers.dtype)
        return cumsum(numbers, dim=dim)

    monkeypatch.setattr(torch, "cumsum", noted)
    engine = Engine(CONFIG, components_on_gpu(CONFIG, "bfloat16"))
    engine.generate(["abc"], replace(GREEDY, temperature=1.0, top_p=0.9, top_k=5))
    assert set(added) == {torch.float64}
