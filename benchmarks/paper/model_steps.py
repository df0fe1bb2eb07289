"""Single steps of a real model, of any size, and the table of their times.

What a step costs does not depend on what the cache holds.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from functools import partial

from benchmarks.paper.clock import ROUNDS, times_in_turns
from course.paper.serving import PAPER_BLOCK_SIZE
from course.paper.step_times import DecodeTime, StepTimes
from engine.components import build_components
from engine.config import EngineConfig
from engine.model.kv_store import KVStore
from engine.sampling_params import SamplingParams
from engine.scheduler import ScheduledSequence
from engine.sequence import Sequence as TokenSequence
from engine.sequence import SequenceGroup

TOKEN_ID = 1000
"""Any token that every vocabulary has."""
SEQUENCES = (1, 2, 4, 8, 16, 32, 64, 128, 256)
SHORT, LONG = 16, 1024
"""Tokens of context a sequence."""
PROMPTS = (16, 64, 256, 1024)
MOST_CONTEXT = 16_384
"""Tokens over all sequences: those of the paper's smallest pools."""


class ModelSteps:
    """A model over a pool of its own, and steps made to measure. Block tables are handed out from block 0 on."""

    def __init__(self, model: str, block_size: int, num_slots: int) -> None:
        """Loads the model. `num_slots`: tokens that the pool holds."""
        num_blocks = num_slots // block_size
        config = EngineConfig(
            model=model, block_size=block_size, num_blocks=num_blocks, num_cpu_blocks=num_blocks,
            max_num_seqs=num_blocks, max_num_batched_tokens=num_slots, max_model_len=min(num_slots, 4096),
        )  # fmt: skip
        components = build_components(config)
        self.name = str(components.info["model"])
        self.block_size = block_size
        self.num_blocks = num_blocks
        assert isinstance(components.store, KVStore)
        self.store = components.store
        self._runner = components.runner
        self._token_id = min(TOKEN_ID, components.vocab_size - 1)

    def decode(self, num_seqs: int, context: int) -> list[ScheduledSequence]:
        """A step that computes the token behind `context - 1` others, for so many sequences."""
        return [self._item(number, context - 1, context) for number in range(num_seqs)]

    def prefill(self, num_tokens: int) -> list[ScheduledSequence]:
        """A step that computes one prompt."""
        return [self._item(0, 0, num_tokens)]

    def run(self, items: list[ScheduledSequence]) -> None:
        """Compute the step."""
        self._runner.run(items)

    def _item(self, number: int, start: int, end: int) -> ScheduledSequence:
        seq = TokenSequence(str(number), 0, [self._token_id] * end, end, start)
        group = SequenceGroup(seq.seq_id, number, SamplingParams(), 0, [seq])
        width = -(-end // self.block_size)
        table = [(number * width + i) % self.num_blocks for i in range(width)]
        return ScheduledSequence(group, seq, start, end - start, table, True)


def measure_step_times(model: str, *, sequences: Sequence[int] = SEQUENCES, rounds: int = ROUNDS) -> StepTimes:
    """Run steps of every size over a pool of `MOST_CONTEXT` tokens, in turns; the first round warms up."""
    steps = ModelSteps(model, PAPER_BLOCK_SIZE, MOST_CONTEXT)
    decodes = [(n, context) for n in sequences for context in (SHORT, min(LONG, MOST_CONTEXT // n))]
    items = [steps.decode(n, context) for n, context in decodes] + [steps.prefill(tokens) for tokens in PROMPTS]
    taken = times_in_turns({number: partial(steps.run, each) for number, each in enumerate(items)}, rounds)
    medians = [statistics.median(times) for times in taken.values()]
    decode = tuple(
        DecodeTime(n, n * SHORT, medians[2 * i], n * min(LONG, MOST_CONTEXT // n), medians[2 * i + 1])
        for i, n in enumerate(sequences)
    )
    return StepTimes(steps.name, decode, tuple(zip(PROMPTS, medians[len(decodes) :], strict=True)))
