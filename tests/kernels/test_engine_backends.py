"""The tiny model end to end: every backend, whatever happens to memory, gives the tokens of `reference`."""

from __future__ import annotations

from dataclasses import replace

import torch

from engine import Engine, EngineConfig, SamplingParams
from engine.model.kv_store import KVStore
from engine.trace.events import BlockCopied, RequestPreempted
from kernels.backend import Backend

CONFIG = EngineConfig(
    model="tiny-random",
    dtype="float32",
    block_size=5,
    num_blocks=13,
    max_num_batched_tokens=16,
    preemption_mode="swap",
    num_cpu_blocks=13,
)
PROMPTS = ["The red fox crossed", "The red fox", "é日"]
PARAMS = [
    SamplingParams(max_tokens=9, ignore_eos=True),
    SamplingParams(max_tokens=8, n=2, temperature=1.0, seed=4, ignore_eos=True),
    SamplingParams(max_tokens=6, beam_width=3),
]


def run(backend: str, device: torch.device) -> Engine:
    engine = Engine(replace(CONFIG, attention_backend=backend, device=device.type))
    store = engine.components.store
    assert isinstance(store, KVStore)
    for cache in (store.key_cache, store.value_cache, store.cpu_key_cache, store.cpu_value_cache):
        cache.fill_(torch.nan)  # what nobody wrote must not be read
    for prompt, params in zip(PROMPTS, PARAMS, strict=True):
        engine.add_request(prompt, params)
    while engine.has_unfinished_requests():
        engine.step()
        if engine.trace.step == 3:
            engine.preempt_request("B")
        engine.check_invariants()
    return engine


def test_tokens_are_those_of_the_reference(target: tuple[Backend, torch.device]) -> None:
    backend, device = target
    ours, theirs = run(backend.name, device), run("reference", torch.device("cpu"))
    assert ours.backend == backend.name
    for name in ("A", "B", "C"):
        assert [o.token_ids for o in ours.output(name).outputs] == [o.token_ids for o in theirs.output(name).outputs]
    happened = {type(event) for event in ours.trace}
    assert {BlockCopied, RequestPreempted} <= happened, "a run that forces nothing proves nothing"
