"""Stop texts in beam search: a beam that meets one is finished and cut there, and hypotheses differ."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import pytest
import torch
from torch import Tensor

from engine import Engine, EngineConfig, SamplingParams
from engine.components import EngineComponents, build_components
from engine.model.tokenizer import ByteTokenizer
from engine.model.weights.embedded import EMBEDDED_MODEL
from engine.outputs import RequestOutput
from engine.sampler import LogitsSampler
from engine.scheduler import ScheduledSequence
from tests.helpers.models import loaded


class SameOdds:
    """The next letter has the same probabilities behind every text; letters not named have none."""

    def __init__(self, odds: Mapping[str, float]) -> None:
        self.row = torch.full((ByteTokenizer.vocab_size,), -math.inf)
        for letter, probability in odds.items():
            self.row[ord(letter)] = math.log(probability)

    def run(self, items: Sequence[ScheduledSequence]) -> Tensor:
        return self.row.repeat(sum(item.needs_logits for item in items), 1)


def search(odds: Mapping[str, float], **params: object) -> RequestOutput:
    components = EngineComponents(ByteTokenizer(), SameOdds(odds), LogitsSampler(), None, ByteTokenizer.vocab_size, {})
    engine = Engine(EngineConfig(block_size=2, num_blocks=32), components)
    (output,) = engine.generate(["?"], SamplingParams(beam_width=2, n=2, **params))  # type: ignore[arg-type]
    engine.check_invariants()
    assert engine.kv.pool.num_free_blocks == 32
    return output


def told(output: RequestOutput) -> list[tuple[str, int, str | None]]:
    return [(beam.text, len(beam.token_ids), beam.finish_reason) for beam in output.outputs]


def test_a_beam_with_a_stop_string_is_finished_and_truncated() -> None:
    output = search({"e": 0.5, "a": 0.3, "b": 0.2}, stop=("e",), max_tokens=8)
    assert told(output) == [("", 1, "stop"), ("a", 2, "stop")]
    assert [beam.cumulative_logprob for beam in output.outputs] == pytest.approx([math.log(0.5), math.log(0.15)])


def test_a_stop_string_may_span_several_tokens() -> None:
    output = search({"e": 0.5, "a": 0.3, "b": 0.2}, stop=("ee",), max_tokens=3)
    assert told(output)[0] == ("", 2, "stop")
    assert told(output)[1] in [("a", 3, "stop"), ("eae", 3, "length")]  # "aee" and "eae" are equally probable


def test_two_stop_strings_give_one_beam_for_one_text() -> None:
    output = search({"e": 0.4, "f": 0.3, "a": 0.2, "b": 0.1}, stop=("e", "f"), max_tokens=8)
    assert told(output) == [("", 1, "stop"), ("a", 2, "stop")]


def test_the_last_token_may_complete_a_stop_string() -> None:
    assert told(search({"e": 0.4, "f": 0.3, "a": 0.3}, stop=("e", "f"), max_tokens=1)) == [
        ("", 1, "stop"),
        ("a", 1, "length"),
    ]


def test_where_every_token_stops_one_beam_is_left() -> None:
    assert told(search({"e": 0.6, "f": 0.4}, stop=("e", "f"), max_tokens=8)) == [("", 1, "stop")]


def test_an_end_token_that_is_ignored_does_not_stop_the_last_token() -> None:
    eos = chr(ByteTokenizer.eos_token_id)
    output = search({eos: 0.9, "a": 0.1}, max_tokens=1, ignore_eos=True)
    assert told(output) == [("", 1, "length"), ("a", 1, "length")]


@pytest.mark.embedded
def test_beams_of_the_embedded_model_end_at_the_stop_string() -> None:
    config = EngineConfig(block_size=4, num_blocks=64, max_model_len=64, attention_backend="reference")
    engine = Engine(config, build_components(config, loaded(EMBEDDED_MODEL)))
    params = SamplingParams(beam_width=2, n=2, stop=("e",), max_tokens=8)
    (output,) = engine.generate(["Let's count: one, two,"], params)
    assert [beam.finish_reason for beam in output.outputs] == ["stop", "stop"]
    first, second = (beam.text for beam in output.outputs)
    assert first == " thr" and second != first and "e" not in second
