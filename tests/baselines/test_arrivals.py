"""Arrivals: what a request may be, seeded draws from the paper's means, typed-in lines."""

from __future__ import annotations

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.baselines.arrivals import ALPACA, MAX_TOKENS_PER_REQUEST, SHAREGPT, Arrival, draw_arrivals, parse_arrivals


def test_words_become_tokens_in_order():
    arrival = Arrival.from_words("A", ["The", "red"], ["fox"], arrival_step=3)
    assert arrival.prompt_token_ids == (0, 1)
    assert arrival.pieces == ("The", "red")
    assert arrival.output_token_ids == (2,)
    assert arrival.output_pieces == ("fox",)
    assert (arrival.num_prompt_tokens, arrival.num_output_tokens, arrival.num_tokens) == (2, 1, 3)


def test_tokens_of_a_given_length_are_their_positions_in_the_request():
    arrival = Arrival.from_lengths("A", 2, 3)
    assert (arrival.prompt_token_ids, arrival.pieces) == ((0, 1), ("0", "1"))
    assert (arrival.output_token_ids, arrival.output_pieces) == ((2, 3, 4), ("2", "3", "4"))


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (
            lambda: Arrival.from_words("A", []),
            "A request needs a prompt, and may have at most 100000 tokens including its reply.",
        ),
        (
            lambda: Arrival.from_words("A", ["x"], arrival_step=0),
            "A request arrives at a step from 1 to 100000, not 0.",
        ),
        (lambda: Arrival("A", 1, (1,), ("x",), (2,), ()), "Every token needs one piece of text."),
        (
            lambda: Arrival.from_lengths("A", MAX_TOKENS_PER_REQUEST + 1, 0),
            "A request has at most 100000 tokens.",
        ),
        (
            lambda: Arrival.from_lengths("A", MAX_TOKENS_PER_REQUEST, 1),
            "A request needs a prompt, and may have at most 100000 tokens including its reply.",
        ),
    ],
)
def test_impossible_requests_are_refused_with_a_sentence(make, sentence):
    with pytest.raises(ValueError) as error:
        make()
    assert str(error.value) == sentence


def test_the_statistics_are_the_papers():
    assert (SHAREGPT.mean_input, SHAREGPT.mean_output) == (161.31, 337.99)
    assert (ALPACA.mean_input, ALPACA.mean_output) == (19.31, 58.45)
    # Section 6.1 states the ratios of the two workloads in words: an independent check of the four numbers.
    assert round(SHAREGPT.mean_input / ALPACA.mean_input, 1) == 8.4
    assert round(SHAREGPT.mean_output / ALPACA.mean_output, 1) == 5.8
    assert "Fig. 11" in SHAREGPT.source


@pytest.mark.parametrize("lengths", [SHAREGPT, ALPACA, ALPACA.scaled(0.25)])
def test_sampled_means_are_near_the_stated_ones(lengths):
    arrivals = draw_arrivals(lengths, 4000, requests_per_step=2.0, max_model_len=100_000, seed=7)
    mean_input = sum(a.num_prompt_tokens for a in arrivals) / len(arrivals)
    mean_output = sum(a.num_output_tokens for a in arrivals) / len(arrivals)
    # Four standard errors: the standard deviation of a geometric length is about its mean.
    assert mean_input == pytest.approx(lengths.mean_input, rel=4 / 4000**0.5)
    assert mean_output == pytest.approx(lengths.mean_output, rel=4 / 4000**0.5)
    assert arrivals[-1].arrival_step == pytest.approx(2000, rel=4 / 4000**0.5)


def test_the_same_seed_draws_the_same_arrivals_in_another_process():
    script = (
        "from engine.baselines.arrivals import *; "
        "print([(a.request_id, a.arrival_step, a.prompt_token_ids, a.num_output_tokens) for a in "
        "draw_arrivals(ALPACA, 3, requests_per_step=0.5, max_model_len=12, seed=1)])"
    )
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    drawn = draw_arrivals(ALPACA, 3, requests_per_step=0.5, max_model_len=12, seed=1)
    assert run.stdout.strip() == str(
        [(a.request_id, a.arrival_step, a.prompt_token_ids, a.num_output_tokens) for a in drawn]
    )
    assert drawn != draw_arrivals(ALPACA, 3, requests_per_step=0.5, max_model_len=12, seed=2)


@given(seed=st.integers(0, 999), max_model_len=st.integers(2, 50), factor=st.floats(0.001, 1))
def test_drawn_arrivals_respect_the_limit_and_come_in_order(seed, max_model_len, factor):
    arrivals = draw_arrivals(SHAREGPT.scaled(factor), 20, requests_per_step=1.0, max_model_len=max_model_len, seed=seed)
    assert all(a.num_prompt_tokens >= 1 and a.num_output_tokens >= 1 for a in arrivals)
    assert all(a.num_tokens <= max_model_len for a in arrivals)
    steps = [a.arrival_step for a in arrivals]
    assert steps == sorted(steps)
    assert len({a.request_id for a in arrivals}) == 20


def test_scaled_statistics_are_labelled():
    assert ALPACA.scaled(0.25).name == "Alpaca x 0.25"
    assert ALPACA.scaled(0.01).mean_input == 1.0


@pytest.mark.parametrize("bad", [{"num_requests": 0}, {"num_requests": 10**9}, {"requests_per_step": 0.0}])
def test_draws_out_of_range_are_refused(bad):
    arguments = {"num_requests": 1, "requests_per_step": 1.0, "max_model_len": 8, "seed": 0} | bad
    with pytest.raises(ValueError, match=r"^Draw 1 to 10000 requests"):
        draw_arrivals(ALPACA, **arguments)


def test_typed_arrivals():
    arrivals = parse_arrivals("1 12 20\n\n 3  5 0\n")
    assert [(a.request_id, a.arrival_step, a.num_prompt_tokens, a.num_output_tokens) for a in arrivals] == [
        ("r0", 1, 12, 20),
        ("r1", 3, 5, 0),
    ]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("1 2", "Line 1 must be three whole numbers: step, prompt tokens, output tokens."),
        ("1 2 3\n1 -2 3", "Line 2 must be three whole numbers: step, prompt tokens, output tokens."),
        ("1 2 3\n\n1 ² 3", "Line 3 must be three whole numbers: step, prompt tokens, output tokens."),
        ("0 2 3", "Line 1: A request arrives at a step from 1 to 100000, not 0."),
        ("1 0 3", "Line 1: A request needs a prompt, and may have at most 100000 tokens including its reply."),
        ("1 999999999 3", "Line 1: A request has at most 100000 tokens."),
        ("1 1 1\n" * 10_001, "At most 10000 requests can be replayed; these are 10001."),
    ],
)
def test_bad_lines_are_reported_by_number(text, sentence):
    with pytest.raises(ValueError) as error:
        parse_arrivals(text)
    assert str(error.value) == sentence
