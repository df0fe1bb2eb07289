"""Choosing tokens: greedy, temperature, top-k, top-p, seeds; beams."""

from __future__ import annotations

import math
from collections import Counter

import pytest
import torch

from engine.beam_search import choose_beams, is_search_over
from engine.sampler import LogitsSampler, SampleRequest, uniform
from engine.sampling_params import SamplingParams
from engine.sequence import Sequence, SequenceGroup

LOGITS = torch.log(torch.tensor([[0.1, 0.4, 0.2, 0.3]]))


def sample_request(params: SamplingParams, *, seed: int = 0, index: int = 0, position: int = 0) -> SampleRequest:
    seq = Sequence("A", index, [0] * position, 0)
    return SampleRequest(0, SequenceGroup("A", 0, params, seed, [seq]), seq)


def pick(params: SamplingParams, **where: int) -> int:
    return LogitsSampler().sample(LOGITS, [sample_request(params, **where)])[0].token_id


def counts(params: SamplingParams, num_draws: int = 4000) -> Counter[int]:
    requests = [sample_request(params, position=p) for p in range(num_draws)]
    return Counter(choice.token_id for choice in LogitsSampler().sample(LOGITS, requests))


def test_greedy_takes_the_most_probable_and_reports_its_logprob():
    choice = LogitsSampler().sample(LOGITS, [sample_request(SamplingParams())])[0]
    assert choice.token_id == 1
    assert choice.logprob == pytest.approx(math.log(0.4), abs=1e-6)


def test_an_empty_sample_batch_needs_no_logits():
    assert LogitsSampler().sample(torch.empty(0, 0), []) == []


def test_temperature_one_draws_from_the_distribution():
    seen = counts(SamplingParams(temperature=1.0))
    for token_id, probability in enumerate((0.1, 0.4, 0.2, 0.3)):
        # 4,000 draws: five standard deviations of a binomial count
        assert abs(seen[token_id] - 4000 * probability) < 5 * math.sqrt(4000 * probability * (1 - probability))


def test_a_low_temperature_concentrates_probability():
    assert counts(SamplingParams(temperature=0.05)).most_common(1)[0][0] == 1
    assert counts(SamplingParams(temperature=0.05))[1] > counts(SamplingParams(temperature=1.0))[1]


@pytest.mark.parametrize(("top_k", "kept"), [(1, {1}), (2, {1, 3}), (3, {1, 2, 3}), (9, {0, 1, 2, 3})])
def test_top_k_keeps_the_most_probable(top_k, kept):
    assert set(counts(SamplingParams(temperature=1.0, top_k=top_k))) == kept


@pytest.mark.parametrize(("top_p", "kept"), [(0.3, {1}), (0.6, {1, 3}), (0.85, {1, 2, 3}), (1.0, {0, 1, 2, 3})])
def test_top_p_keeps_the_smallest_set_that_reaches_it(top_p, kept):
    assert set(counts(SamplingParams(temperature=1.0, top_p=top_p))) == kept


@pytest.mark.parametrize("temperature", [1e-5, 9e-6, 1e-38, 5e-324])
def test_the_smallest_temperatures_take_the_most_probable_token(temperature):
    assert set(counts(SamplingParams(temperature=temperature))) == {1}
    assert SamplingParams(temperature=temperature).is_greedy == (temperature < 1e-5)


def test_random_numbers_belong_to_seed_sample_and_position():
    assert uniform(7, 0, 3) == uniform(7, 0, 3)
    numbers = {uniform(seed, index, position) for seed in range(3) for index in range(3) for position in range(3)}
    assert len(numbers) == 27
    assert all(0 <= number < 1 for number in numbers)


def test_large_and_negative_seeds_are_distinct():
    numbers = {uniform(seed, 0, 0) for seed in (-1, -2, 2**63, 2**63 + 1, 2**64 - 3, 1)}
    assert len(numbers) == 6


def test_a_sample_does_not_depend_on_the_rest_of_the_batch():
    params = SamplingParams(temperature=1.0)
    alone = [pick(params, seed=5, position=p) for p in range(20)]
    together = LogitsSampler().sample(LOGITS, [sample_request(params, seed=5, position=p) for p in range(20)])
    assert [choice.token_id for choice in together] == alone
    assert len(set(alone)) > 1


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({"temperature": -1.0}, "temperature must be a number of at least 0; it is -1.0."),
        ({"temperature": math.nan}, "temperature must be a finite number; it is nan."),
        ({"top_p": 0.0}, "top_p must be above 0 and at most 1; it is 0.0."),
        ({"n": 0}, "n must be a whole number of at least 1; it is 0."),
        ({"max_tokens": -1}, "max_tokens must be a whole number of at least 0; it is -1."),
        ({"n": 3, "beam_width": 2}, "n (3) cannot be larger than beam_width (2)."),
        ({"stop": ("",)}, "stop must be a tuple of texts, none of them empty."),
    ],
)
def test_invalid_params_are_refused_with_a_reason(values, sentence):
    with pytest.raises(ValueError) as error:
        SamplingParams(**values)
    assert str(error.value) == sentence


def test_one_beam_may_have_two_children():
    logits = torch.log(torch.tensor([[0.5, 0.3, 0.1, 0.1], [0.4, 0.3, 0.2, 0.1]]))
    choice = choose_beams(logits, [0.0, math.log(0.25)], beam_width=2, end_token_ids=(), is_last_token=False)
    assert [(c.beam, c.token_id) for c in choice.survivors] == [(0, 0), (0, 1)]
    assert [c.logprob for c in choice.survivors] == pytest.approx([math.log(0.5), math.log(0.3)], abs=1e-6)
    assert choice.ended == []


def test_an_eos_among_the_best_becomes_a_hypothesis_and_the_next_best_continues():
    logits = torch.log(torch.tensor([[0.5, 0.3, 0.15, 0.05]]))
    choice = choose_beams(logits, [0.0], beam_width=2, end_token_ids=(1,), is_last_token=False)
    assert [c.token_id for c in choice.ended] == [1]
    assert [c.token_id for c in choice.survivors] == [0, 2]


def test_an_eos_behind_the_best_is_no_hypothesis():
    logits = torch.log(torch.tensor([[0.5, 0.3, 0.15, 0.05]]))
    choice = choose_beams(logits, [0.0], beam_width=2, end_token_ids=(2,), is_last_token=False)
    assert choice.ended == []
    assert [c.token_id for c in choice.survivors] == [0, 1]


def test_the_last_token_ends_every_candidate():
    logits = torch.log(torch.tensor([[0.5, 0.3, 0.15, 0.05]]))
    choice = choose_beams(logits, [0.0], beam_width=2, end_token_ids=(), is_last_token=True)
    assert ([c.token_id for c in choice.ended], choice.survivors) == ([0, 1], [])


def test_the_search_is_over_when_no_live_beam_can_improve():
    assert not is_search_over([-1.0], best_live_logprob=-100.0, num_output_tokens=2, beam_width=2)
    assert is_search_over([-1.0, -2.0], best_live_logprob=-4.0, num_output_tokens=2, beam_width=2)
    assert not is_search_over([-1.0, -2.0], best_live_logprob=-3.9, num_output_tokens=2, beam_width=2)


def test_samples_of_one_batch_keep_their_settings_and_rows():
    """Greedy beside random, top_k beside top_p, rows out of order and twice: each as if it were alone."""
    logits = torch.randn(3, 50, generator=torch.Generator().manual_seed(2))
    settings = [
        (2, SamplingParams()),
        (0, SamplingParams(temperature=0.7, top_k=5)),
        (2, SamplingParams(temperature=1.3, top_p=0.6)),
        (1, SamplingParams(temperature=1.0, top_k=9, top_p=0.8)),
        (0, SamplingParams(temperature=2.0)),
    ]
    requests = [SampleRequest(row, *_group_of(params, position)) for position, (row, params) in enumerate(settings)]
    together = LogitsSampler().sample(logits, requests)
    for one, choice in zip(requests, together, strict=True):
        [alone] = LogitsSampler().sample(logits, [one])
        assert choice.token_id == alone.token_id
        exact = torch.log_softmax(logits[one.row].double(), -1)[choice.token_id]
        assert choice.logprob == pytest.approx(float(exact), abs=1e-5)


def _group_of(params: SamplingParams, position: int) -> tuple[SequenceGroup, Sequence]:
    seq = Sequence("A", 0, [0] * position, 0)
    return SequenceGroup("A", 0, params, 11, [seq]), seq
