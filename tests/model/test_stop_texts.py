"""Streamed text: nothing half, nothing taken back, stop texts never shown."""

from __future__ import annotations

import itertools

import pytest

from course.scripted_engine import scripted_engine
from engine import EngineConfig, SamplingParams
from engine.model.detokenizer import TextStream
from engine.model.tokenizer import ByteTokenizer

HOSTILE = "a é 日本 👩‍👩‍👧 \t\n مرحبا <b>$5</b>"


def shown_while_streaming(text: str, stop: tuple[str, ...] = ()) -> list[str]:
    stream = TextStream(ByteTokenizer(), stop)
    shown = []
    for byte in text.encode():
        stream.push(byte)
        shown.append(stream.text)
    stream.close()
    return [*shown, stream.text]


def test_streamed_text_has_whole_characters_and_is_never_retracted():
    shown = shown_while_streaming(HOSTILE)
    assert shown[-1] == HOSTILE
    assert all("\ufffd" not in text for text in shown)
    assert all(after.startswith(before) for before, after in itertools.pairwise(shown))


def test_a_stop_string_and_its_prefix_are_never_streamed():
    shown = shown_while_streaming("one END two", stop=("END",))
    assert shown[-1] == "one "
    assert set(shown) == {"o", "on", "one", "one "}


def test_a_partial_match_of_a_stop_string_is_streamed_later():
    assert shown_while_streaming("one EN", stop=("END",))[-1] == "one EN"


def test_the_earliest_of_several_stop_strings_wins():
    assert shown_while_streaming("a bc d", stop=("bc d", "c"))[-1] == "a b"


def test_a_forks_detokenizer_is_independent():
    stream = TextStream(ByteTokenizer(), ())
    stream.push(0xC3)
    fork = stream.fork()
    stream.push(0xA9)
    fork.push(0xA8)
    assert (stream.text, fork.text) == ("é", "è")


@pytest.mark.parametrize("n", [1, 2])
def test_a_stop_string_across_tokens_ends_the_request(n):
    engine = scripted_engine(
        EngineConfig(block_size=2, num_blocks=16),
        {"A": ["fox", "ran", "home", "late"], "A#1": ["fox", "ran", "home", "late"]},
    )
    output = engine.generate(["the red"], SamplingParams(max_tokens=9, n=n, stop=("ran home",)))[0]
    assert [(o.text, o.finish_reason, len(o.token_ids)) for o in output.outputs] == [(" fox ", "stop", 3)] * n
    engine.check_invariants()
    assert engine.kv.pool.num_free_blocks == 16
