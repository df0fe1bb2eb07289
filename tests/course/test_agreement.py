"""Words agree with the count before them: what lessons, questions and the lab say at 0, 1, 2 and more."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from course.pages import LESSONS
from course.why_not_shared.experiment import why_not_shared
from course.words import passage
from engine.model.tokenizer import ByteTokenizer
from views.lessons import batch, block_table, growth, reserved_space, sharing, what_is_cached
from views.memory_map.frames import Payload

_NOUN = r"(?:slot|token|block|request|step|word|copy|character|event)"
_ADJECTIVE = r"(?:common |free |prompt )?"
DISAGREES = re.compile(
    rf"(?<!#)\b1 {_ADJECTIVE}{_NOUN}s\b"
    rf"|(?<!#)\b1 {_ADJECTIVE}{_NOUN}(?: before it)? (?:are|have|hold|take|lie|fill|need|stand|were)\b"
    rf"|\b(?:0|2) {_NOUN}\b"
)


def texts_of(payload: Payload) -> Iterator[str]:
    for frame in payload["frames"]:
        yield frame["label"]
        yield from frame.get("say", [])
        yield from frame.get("captions", [])


def lessons() -> Iterator[str]:
    for num_reserved in (1, 2, 16):
        yield from texts_of(reserved_space.reserved_space(num_reserved, "running text").payload)
    for block_size in (1, 4, 64):
        both = batch.both_layouts(20, block_size)
        yield from texts_of(both.reserved.payload)
        yield from texts_of(both.in_blocks.payload)
    yield from texts_of(batch.gauge().payload)
    for block_size in (1, 2, 4):
        yield from texts_of(growth.pages(passage(6), block_size, 1).payload)
    yield from texts_of(block_table.requests_in_order(0).payload)
    yield from texts_of(what_is_cached.cached(next(iter(what_is_cached.MODELS)), "16 bits").payload)
    for way in sharing.WAY.options:
        yield from texts_of(sharing.shared_beginning(way).payload)
    for name in sharing.FIGURES:
        yield from texts_of(sharing.paper_figure(name).payload)


def questions() -> Iterator[str]:
    for lesson in LESSONS:
        for seed in range(30):
            asked = lesson.question(seed)
            yield from (asked.prompt, *(choice.text for choice in asked.choices))


def reasons() -> Iterator[str]:
    for tail in ("e", "ef", "efgh"):
        yield from why_not_shared(ByteTokenizer(), 4, f"abcd{tail}x", f"abcd{tail}y").reasons
        yield from why_not_shared(ByteTokenizer(), 4, f"abcd{tail}", f"abcd{tail}").reasons


@pytest.mark.parametrize("told", [lessons, questions, reasons])
def test_words_agree_with_their_count(told) -> None:
    texts = list(map(str, told()))
    assert len(texts) > 5
    assert [text for text in texts if DISAGREES.search(text)] == []


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("The 1 common token before it lie in", True),
        ("its last 1 token fill no block", True),
        ("one contiguous region of 1 slots", True),
        ("1 request hold 20 slots", True),
        ("2 slot", True),
        ("1 token takes 1 block", False),
        ("2 tokens take", False),
    ],
)
def test_the_check_can_fail(text: str, found: bool) -> None:
    assert bool(DISAGREES.search(text)) is found
