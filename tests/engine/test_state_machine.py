"""Random add, step, abort, fork, preempt, shuffle: every rule holds after every step, and no output notices.

One of the rules is liveness: while anything is unfinished, some request gets a token within the bound that
`Scheduler.max_steps_to_next_token` derives. Every combination of the ways to preempt, to share and to sample is run:
a little of each in every test run, 50,000 steps in all with `pytest -m slow`.
"""

from __future__ import annotations

import itertools
import random
from typing import ClassVar, NamedTuple

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    precondition,
    rule,
    run_state_machine_as_test,
)

from engine import Engine, EngineConfig, SamplingParams
from engine.admission import RequestRefusedError
from engine.config import ParallelSampling
from engine.trace.events import PreemptionMode
from tests.helpers.hash_model import VOCAB_SIZE, greedy_continuation, hash_engine

SLOW_STEPS = 50_000
"""Engine steps of the slow test, over all combinations."""

QUICK_STEPS = 50
"""Engine steps of each combination in every test run."""


class Combination(NamedTuple):
    """`caching` is needed by `prefix_cache`. `groups`: what requests of several sequences are."""

    preemption_mode: PreemptionMode
    parallel_sampling: ParallelSampling
    caching: bool
    chunked: bool
    groups: str


SHARING = (("fork", False), ("fork", True), ("prefix_cache", True))
COMBINATIONS = [
    Combination(mode, way, caching, chunked, groups)  # type: ignore[arg-type]
    for mode, (way, caching), chunked, groups in itertools.product(
        ("recompute", "swap"), SHARING, (False, True), ("samples", "beams")
    )
]

token_ids = st.integers(0, 3)
"""Few different tokens, so that prefixes meet often."""


class EngineMachine(RuleBasedStateMachine):
    combination: ClassVar[Combination]
    num_engine_steps: ClassVar[int]

    engine: Engine

    @initialize(
        block_size=st.sampled_from([1, 2, 3, 4, 5, 8]),
        num_blocks=st.integers(1, 24),
        max_num_seqs=st.integers(1, 6),
        extra_budget=st.integers(0, 12),
        num_cpu_blocks=st.integers(1, 24),
        threshold=st.sampled_from([1, 3, 7]),
    )
    def start(self, block_size, num_blocks, max_num_seqs, extra_budget, num_cpu_blocks, threshold):
        ways = self.combination
        self.engine = hash_engine(
            EngineConfig(
                block_size=block_size,
                num_blocks=num_blocks,
                max_num_seqs=max_num_seqs,
                max_num_batched_tokens=max_num_seqs + extra_budget,
                max_model_len=40,
                enable_prefix_caching=ways.caching,
                preemption_mode=ways.preemption_mode,
                num_cpu_blocks=min(num_cpu_blocks, num_blocks) if ways.preemption_mode == "swap" else 0,
                parallel_sampling=ways.parallel_sampling,
                long_prefill_token_threshold=threshold if ways.chunked else None,
            )
        )
        self.expected: dict[str, list[int]] = {}

    @rule(
        prompt=st.lists(token_ids, min_size=0, max_size=14),
        max_tokens=st.integers(0, 12),
        num_sequences=st.sampled_from([1, 1, 2, 3]),
        temperature=st.sampled_from([0.0, 1.0]),
    )
    def add(self, prompt, max_tokens, num_sequences, temperature):
        size = {"n" if self.combination.groups == "samples" else "beam_width": num_sequences}
        params = SamplingParams(max_tokens=max_tokens, temperature=temperature, **size)
        try:
            name = self.engine.add_request(prompt, params)
        except RequestRefusedError:
            return
        if temperature == 0 and not params.uses_beam_search:
            self.expected[name] = greedy_continuation(prompt, min(max_tokens, 40 - len(prompt)))

    @rule(count=st.integers(1, 6))
    def step(self, count):
        for _ in range(count):
            if self.engine.has_unfinished_requests():
                self._step_once()

    @precondition(lambda self: self.engine.scheduler.running)
    @rule(pick=st.randoms(use_true_random=False))
    def abort(self, pick: random.Random):
        name = pick.choice(self._all_unfinished())
        self.engine.abort_request(name)
        self.expected.pop(name, None)
        self.engine.check_invariants()

    @precondition(lambda self: self.engine.scheduler.running)
    @rule(pick=st.randoms(use_true_random=False))
    def fork(self, pick: random.Random):
        source = pick.choice(self.engine.scheduler.running).request_id
        try:
            fork = self.engine.fork_request(source)
        except RequestRefusedError:
            return
        if source in self.expected:
            self.expected[fork] = self.expected[source]
        self.engine.check_invariants()

    @precondition(lambda self: self.engine.scheduler.running)
    @rule(pick=st.randoms(use_true_random=False))
    def preempt(self, pick: random.Random):
        self.engine.preempt_request(pick.choice(self.engine.scheduler.running).request_id)
        self.engine.check_invariants()

    @rule(pick=st.randoms(use_true_random=False))
    def shuffle(self, pick: random.Random):
        permutation = list(range(self.engine.config.num_blocks))
        pick.shuffle(permutation)
        self.engine.shuffle_blocks(permutation)
        self.engine.check_invariants()

    @rule()
    def clear_prefix_cache(self):
        self.engine.clear_prefix_cache()
        self.engine.check_invariants()

    def teardown(self):
        if not hasattr(self, "engine"):
            return
        while self.engine.has_unfinished_requests():
            self._step_once()
        assert self.engine.kv.pool.num_free_blocks == self.engine.config.num_blocks
        assert self.engine.kv.swap_space.num_free_blocks == self.engine.config.num_cpu_blocks
        for name, tokens in self.expected.items():
            for sample in self.engine.output(name).outputs:
                assert list(sample.token_ids) == tokens, name

    def _step_once(self):
        type(self).num_engine_steps += 1
        self.engine.step()
        self.engine.check_invariants()

    def _all_unfinished(self) -> list[str]:
        scheduler = self.engine.scheduler
        return [g.request_id for g in [*scheduler.running, *scheduler.waiting, *scheduler.swapped]]


def run_random_lives(combination: Combination, num_steps: int) -> None:
    assert VOCAB_SIZE > 3
    machine = type("Machine", (EngineMachine,), {"combination": combination, "num_engine_steps": 0})
    settings_ = settings(
        max_examples=5,
        stateful_step_count=40,
        deadline=None,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    while machine.num_engine_steps < num_steps:  # type: ignore[attr-defined]
        run_state_machine_as_test(machine, settings=settings_)


every_combination = pytest.mark.parametrize("combination", COMBINATIONS, ids=lambda c: "-".join(str(way) for way in c))


@every_combination
def test_random_operations_keep_every_invariant(combination):
    run_random_lives(combination, QUICK_STEPS)


@pytest.mark.slow
@every_combination
def test_long_random_operations_keep_every_invariant(combination):
    run_random_lives(combination, -(-SLOW_STEPS // len(COMBINATIONS)))
