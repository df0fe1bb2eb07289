"""Random add, step, abort, fork, preempt, shuffle: every rule holds after every step, and no output notices.

Budget: MAX_EXAMPLES * STEPS rules, of which about 60 % are engine steps; the last test proves that 10,000 were run.
"""

from __future__ import annotations

import random
from typing import ClassVar

from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from engine import Engine, EngineConfig, SamplingParams
from engine.admission import RequestRefusedError
from tests.helpers.hash_model import VOCAB_SIZE, greedy_continuation, hash_engine

TARGET_STEPS = 10_000
token_ids = st.integers(0, 3)
"""Few different tokens, so that prefixes meet often."""


class EngineMachine(RuleBasedStateMachine):
    num_engine_steps: ClassVar[int] = 0

    engine: Engine

    @initialize(
        block_size=st.sampled_from([1, 2, 3, 4, 5, 8]),
        num_blocks=st.integers(1, 24),
        max_num_seqs=st.integers(1, 6),
        extra_budget=st.integers(0, 12),
        caching=st.booleans(),
        swap=st.booleans(),
        v1_sampling=st.booleans(),
        threshold=st.sampled_from([None, 1, 3, 7]),
    )
    def start(self, block_size, num_blocks, max_num_seqs, extra_budget, caching, swap, v1_sampling, threshold):
        self.engine = hash_engine(
            EngineConfig(
                block_size=block_size,
                num_blocks=num_blocks,
                max_num_seqs=max_num_seqs,
                max_num_batched_tokens=max_num_seqs + extra_budget,
                max_model_len=40,
                enable_prefix_caching=caching,
                preemption_mode="swap" if swap else "recompute",
                num_cpu_blocks=max(1, num_blocks // 2) if swap else 0,
                parallel_sampling="prefix_cache" if v1_sampling and caching else "fork",
                long_prefill_token_threshold=threshold,
            )
        )
        self.expected: dict[str, list[int]] = {}

    @rule(
        prompt=st.lists(token_ids, min_size=0, max_size=14),
        max_tokens=st.integers(0, 12),
        n=st.sampled_from([1, 1, 1, 2, 3]),
        beam_width=st.sampled_from([1, 1, 1, 3]),
    )
    def add(self, prompt, max_tokens, n, beam_width):
        params = SamplingParams(max_tokens=max_tokens, n=1 if beam_width > 1 else n, beam_width=beam_width)
        try:
            name = self.engine.add_request(prompt, params)
        except RequestRefusedError:
            return
        if beam_width == 1:
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
            twin = self.engine.fork_request(source)
        except RequestRefusedError:
            return
        if source in self.expected:
            self.expected[twin] = self.expected[source]
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
        for _ in range(400):
            if not self.engine.has_unfinished_requests():
                break
            self._step_once()
        assert not self.engine.has_unfinished_requests(), "the engine hangs"
        assert self.engine.kv.pool.num_free_blocks == self.engine.config.num_blocks
        assert self.engine.kv.swap_space.num_free_blocks == self.engine.config.num_cpu_blocks
        for name, tokens in self.expected.items():
            for sample in self.engine.output(name).outputs:
                assert list(sample.token_ids) == tokens, name

    def _step_once(self):
        EngineMachine.num_engine_steps += 1
        self.engine.step()
        self.engine.check_invariants()

    def _all_unfinished(self) -> list[str]:
        scheduler = self.engine.scheduler
        return [g.request_id for g in [*scheduler.running, *scheduler.waiting, *scheduler.swapped]]


def test_random_lives_keep_every_rule():
    assert VOCAB_SIZE > 3
    EngineMachine.num_engine_steps = 0
    settings_ = settings(
        max_examples=60,
        stateful_step_count=40,
        deadline=None,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    from hypothesis.stateful import run_state_machine_as_test

    while EngineMachine.num_engine_steps < TARGET_STEPS:
        run_state_machine_as_test(EngineMachine, settings=settings_)
