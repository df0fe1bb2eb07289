"""Scores that are not numbers end the request that got them, in every way of choosing; nobody else notices."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from torch import Tensor

from engine import Engine, EngineConfig, SamplingParams
from engine.scheduler import ScheduledSequence
from engine.trace.events import RequestFinished
from engine.trace.trace import Trace
from tests.helpers.hash_model import HashRunner, greedy_continuation, hash_engine

CONFIG = EngineConfig(block_size=4, num_blocks=40, max_num_seqs=8, max_num_batched_tokens=64)
SENTENCE = "The model failed on this request (NonFiniteLogitsError), so it has ended."


class Spoiler(HashRunner):
    """Spoils the scores behind `num_tokens` tokens of request B."""

    value: float
    num_tokens: int

    def run(self, items: Sequence[ScheduledSequence]) -> Tensor:
        logits = super().run(items)
        for row, item in enumerate(item for item in items if item.needs_logits):
            if item.group.request_id == "B" and item.sequence.num_tokens >= self.num_tokens:
                logits[row, 7:] = self.value
        return logits


def spoiled_engine(value: float, num_tokens: int) -> Engine:
    engine = hash_engine(CONFIG)
    assert isinstance(engine.components.runner, HashRunner)
    engine.components.runner.__class__ = Spoiler
    engine.components.runner.value, engine.components.runner.num_tokens = value, num_tokens  # type: ignore[attr-defined]
    return engine


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
@pytest.mark.parametrize("num_tokens", [3, 5])
@pytest.mark.parametrize(
    "params",
    [
        SamplingParams(max_tokens=6),
        SamplingParams(max_tokens=6, temperature=1.0, top_k=9, top_p=0.5),
        SamplingParams(max_tokens=6, temperature=1.0, n=2),
        SamplingParams(max_tokens=6, beam_width=2, n=2),
    ],
    ids=["greedy", "sampled", "two samples", "beams"],
)
def test_a_request_with_nan_logits_ends_alone_and_the_trace_stays_readable(
    params: SamplingParams, num_tokens: int, value: float
) -> None:
    engine = spoiled_engine(value, num_tokens)
    greedy = SamplingParams(max_tokens=6)
    one, spoiled, other = engine.generate([[5, 6], [1, 2, 3], [9]], [greedy, params, greedy])
    assert (one.error, spoiled.error, other.error) == (None, SENTENCE, None)
    assert list(one.outputs[0].token_ids) == greedy_continuation([5, 6], 6)
    assert list(other.outputs[0].token_ids) == greedy_continuation([9], 6)
    assert all(len(output.token_ids) <= num_tokens - 3 for output in spoiled.outputs)
    assert [e.reason for e in engine.trace if isinstance(e, RequestFinished) and e.request_id == "B"] == ["error"]
    engine.check_invariants()
    assert engine.kv.pool.num_free_blocks == 40
    text = engine.trace.to_json()
    assert "NaN" not in text and "Infinity" not in text
    assert Trace.from_json(text).events == engine.trace.events
