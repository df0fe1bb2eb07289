"""Streamed text: nothing half, nothing taken back, stop texts never shown."""

from __future__ import annotations

import itertools

import pytest

from engine import EngineConfig, SamplingParams
from engine.scripted import scripted_engine
from engine.text_stream import TextStream
from engine.tokenizer import ByteTokenizer

HOSTILE = "a é 日本 👩‍👩‍👧 \t\n مرحبا <b>$5</b>"


def shown_while_streaming(text: str, stop: tuple[str, ...] = ()) -> list[str]:
    stream = TextStream(ByteTokenizer(), stop)
    shown = []
    for byte in text.encode():
        stream.push(byte)
        shown.append(stream.text)
    stream.close()
    return [*shown, stream.text]


def test_no_half_characters_and_nothing_taken_back():
    shown = shown_while_streaming(HOSTILE)
    assert shown[-1] == HOSTILE
    assert all("\ufffd" not in text for text in shown)
    assert all(after.startswith(before) for before, after in itertools.pairwise(shown))


def test_a_stop_text_never_shows_not_even_its_beginning():
    shown = shown_while_streaming("one END two", stop=("END",))
    assert shown[-1] == "one "
    assert set(shown) == {"o", "on", "one", "one "}


def test_what_only_looked_like_a_stop_text_is_shown():
    assert shown_while_streaming("one EN", stop=("END",))[-1] == "one EN"


def test_the_earliest_of_several_stop_texts_wins():
    assert shown_while_streaming("a bc d", stop=("bc d", "c"))[-1] == "a b"


def test_a_fork_goes_its_own_way():
    stream = TextStream(ByteTokenizer(), ())
    stream.push(0xC3)
    twin = stream.fork()
    stream.push(0xA9)
    twin.push(0xA8)
    assert (stream.text, twin.text) == ("é", "è")


@pytest.mark.parametrize("n", [1, 2])
def test_a_stop_text_across_tokens_ends_the_request(n):
    engine = scripted_engine(
        EngineConfig(block_size=2, num_blocks=16),
        {"A": ["fox", "ran", "home", "late"], "A#1": ["fox", "ran", "home", "late"]},
    )
    output = engine.generate(["the red"], SamplingParams(max_tokens=9, n=n, stop=("ran home",)))[0]
    assert [(o.text, o.finish_reason, len(o.token_ids)) for o in output.outputs] == [(" fox ", "stop", 3)] * n
    engine.check_invariants()
    assert engine.kv.pool.num_free_blocks == 16
