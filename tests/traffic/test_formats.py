"""Formats of traffic: requests read, lines that cannot be used named and skipped."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.traffic import formats
from engine.traffic.blocks import block_trace
from engine.traffic.formats import Traffic, read_traffic
from engine.traffic.hit_curve import hit_curve
from engine.traffic.shared_prefix import shared_prefix

MOONCAKE = """\
{"timestamp": 0, "input_length": 1300, "output_length": 40, "hash_ids": [1, 2, 3]}
{"timestamp": 250, "input_length": 1700, "output_length": 64, "hash_ids": [1, 2, 4, 5]}
{"timestamp": 900, "input_length": 1300, "output_length": 12, "hash_ids": [1, 2, 3]}
{"timestamp": 4000, "input_length": 512, "output_length": 5, "hash_ids": [6]}
"""
PREFIX_REPETITION = (
    "--dataset-name prefix_repetition --prefix-repetition-prefix-len 512 --prefix-repetition-suffix-len 128 "
    "--prefix-repetition-num-prefixes 5 --prefix-repetition-output-len 128 --num-prompts 100"
)


def read(text: str) -> Traffic:
    return read_traffic(text.splitlines(), lambda prompt: prompt.encode())


def best_hits(traffic: Traffic, block_size: int) -> int:
    """Tokens found when nothing is evicted."""
    trace = block_trace(traffic, block_size)
    [result] = hit_curve(trace, [10_000])
    assert result.num_evicted == 0
    return result.hit_blocks * block_size


def test_mooncake_hits_42_6_percent_of_full_blocks() -> None:
    traffic = read(MOONCAKE)
    assert (traffic.kind, len(traffic), traffic.num_prompt.tolist()) == ("mooncake", 4, [1300, 1700, 1300, 512])
    assert sum(traffic.num_prompt) == 4812
    assert best_hits(traffic, 512) == 2048  # 1024 and 1024: the partial block of the third row is no full block
    assert best_hits(traffic, 1024) == 2048
    assert best_hits(traffic, 2048) == 0
    with pytest.raises(ValueError, match="Hash ids stand for 512 tokens: take a multiple of it"):
        block_trace(traffic, 16)


def test_prefix_repetition_finds_76_percent_at_best() -> None:
    """Published: 100 prompts of 640 tokens over 5 prefixes of 512; 95 of them find theirs."""
    traffic = read(PREFIX_REPETITION)
    assert (len(traffic), sum(traffic.num_prompt)) == (100, 64_000)
    assert best_hits(traffic, 16) == 95 * 512 == 48_640
    assert len(read(PREFIX_REPETITION.replace("prefixes 5", "prefixes 3").replace("100", "10"))) == 9


def test_prompts_one_a_line() -> None:
    traffic = read(
        '{"prompt": "You are a clerk.\\nTicket 1", "output_tokens": 20}\n\n{"prompt": "You are a clerk.\\nTicket 2"}'
    )
    assert (traffic.kind, traffic.num_output.tolist()) == ("prompts", [20, 1])
    assert traffic.items_of(1).tolist() == list(b"You are a clerk.\nTicket 2")
    assert best_hits(traffic, 8) == 24
    prefix = shared_prefix(block_trace(traffic, 8))
    assert (prefix.num_tokens, prefix.num_requests) == (24, 2)
    assert (prefix.computed_without_cache, prefix.saved_at_most) == (48, 24)


def test_messages_of_a_chat_are_a_prompt() -> None:
    traffic = read('{"messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi"}]}')
    assert traffic.items_of(0).tolist() == list(b"Be brief.\nHi")


def test_sharegpt_takes_the_first_two_turns() -> None:
    traffic = read(
        '[{"id": "s0", "conversations": [{"from": "human", "value": "List three primes."}, '
        '{"from": "gpt", "value": "2, 3, 5."}]},\n'
        ' {"id": "s1", "conversations": [{"from": "human", "value": "Only a question"}]}]'
    )
    assert (traffic.kind, traffic.num_prompt.tolist(), traffic.num_output.tolist()) == ("sharegpt", [18], [8])
    assert traffic.problems == [(2, "it has fewer than two turns")]


def test_azure_gives_lengths_and_no_hits() -> None:
    traffic = read(
        "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 09:00:00.0000000,1200,45\n"
        "2023-11-16 09:00:00.4300000,310\n2023-11-16 09:00:02.1250000,7400,210\n"
    )
    assert (traffic.kind, traffic.num_prompt.tolist(), traffic.num_output.tolist()) == (
        "azure",
        [1200, 7400],
        [45, 210],
    )
    assert traffic.problems == [(3, "it does not hold a time and two whole numbers")]
    assert best_hits(traffic, 16) == 0


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("oops", "it is not JSON"),
        ("[" * 50_000, "it is not JSON"),
        ("3", "it is not a JSON object"),
        ("{}", 'it has no "prompt", no "messages" and no "hash_ids"'),
        ('{"prompt": "a"}', "its format differs from the lines before it"),
        ('{"input_length": 1300, "output_length": 1, "hash_ids": [1, 2]}', "2 hash ids do not fit 1300 tokens"),
        ('{"input_length": 512, "output_length": 1, "hash_ids": ["1"]}', "hash_ids is not a list of whole numbers"),
        ('{"input_length": 0, "hash_ids": []}', "input_length and output_length must be whole numbers"),
        ('{"input_length": 512, "output_length": true, "hash_ids": [1]}', "must be whole numbers"),
    ],
)
def test_a_broken_line_is_named_and_skipped(line: str, why: str) -> None:
    traffic = read(f"{MOONCAKE}{line}\n{MOONCAKE}")
    assert len(traffic) == 8
    [(number, said)] = traffic.problems
    assert number == 5
    assert why in said


def test_many_broken_lines_are_counted() -> None:
    traffic = read("x\n" * 100)
    assert (traffic.num_unusable, len(traffic.problems), len(traffic)) == (100, formats.MOST_NAMED, 0)


def test_too_much_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(formats, "MOST_TOKENS", 100)
    with pytest.raises(ValueError, match="more than 100 tokens"):
        read("\n".join(json.dumps({"prompt": "a" * 60}) for _number in range(2)))


@given(st.text())
def test_any_text_is_read(text: str) -> None:
    traffic = read(text)
    assert len(traffic.num_prompt) == len(traffic.num_output) == len(traffic.ends)


def test_no_shared_beginning() -> None:
    assert shared_prefix(block_trace(read('{"prompt": "abc"}'), 16)).num_blocks == 0
    assert shared_prefix(block_trace(read('{"prompt": "abcd"}\n{"prompt": "efgh"}'), 2)).num_blocks == 0
