"""Streaming text: whole characters only, and in the end the very text of all tokens."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.model.detokenizer import IncrementalDetokenizer
from engine.model.tokenizer import ByteTokenizer
from tests.helpers.models import loaded
from tests.helpers.texts import TEXTS

REPLACEMENT = "\ufffd"


@pytest.mark.parametrize("text", TEXTS)
def test_every_partial_text_has_whole_characters(text: str) -> None:
    """A token a byte: each character appears with its last byte, never a part of it before."""
    stream = IncrementalDetokenizer(ByteTokenizer())
    shown = ""
    for token_id in text.encode():
        shown += stream.push(token_id)
        assert text.startswith(shown) and REPLACEMENT not in shown
    assert shown == stream.text == text
    assert stream.flush() == ""


@pytest.mark.embedded
@pytest.mark.parametrize("text", TEXTS)
def test_subword_tokens_stream_the_same_text(text: str) -> None:
    tokenizer = loaded().tokenizer
    stream = IncrementalDetokenizer(tokenizer)
    pieces = [stream.push(token_id) for token_id in tokenizer.encode(text)]
    assert "".join(pieces) == text


@given(st.lists(st.integers(0, 257), max_size=40))
def test_any_bytes_stream_to_the_whole_decode(token_ids: list[int]) -> None:
    """Broken bytes included: joined pieces and the flush equal the decode of all tokens at once."""
    tokenizer = ByteTokenizer()
    stream = IncrementalDetokenizer(tokenizer)
    pieces = [stream.push(token_id) for token_id in token_ids]
    assert "".join(pieces) + stream.flush() == tokenizer.decode(token_ids) == stream.text


def test_a_text_that_ends_within_a_character_has_a_replacement_character() -> None:
    stream = IncrementalDetokenizer(ByteTokenizer())
    assert stream.push(ord("a")) == "a"
    assert stream.push(0xE6) == ""
    assert stream.flush() == REPLACEMENT


def test_special_tokens_are_shown_only_on_request() -> None:
    eos = ByteTokenizer.eos_token_id
    assert IncrementalDetokenizer(ByteTokenizer()).push(eos) == ""
    assert IncrementalDetokenizer(ByteTokenizer(), skip_special_tokens=False).push(eos) == "<eos>"


def test_a_fork_continues_from_half_a_character() -> None:
    stream = IncrementalDetokenizer(ByteTokenizer())
    for byte in "日本".encode()[:5]:
        stream.push(byte)
    fork = stream.fork()
    assert (fork.push(0xAC), stream.push(ord("!"))) == ("本", REPLACEMENT + "!")
    assert (fork.text, stream.text) == ("日本", "日" + REPLACEMENT + "!")
