"""Lesson "Keep pages in order": three requests whose blocks lie anywhere, and one token followed to its slot."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from engine.scenes.block_table import block_table
from engine.state import CacheState
from views.lesson_picture import Picture, Telling, picture
from views.made_once import made_once
from views.told import Figure
from views.url_values import ChoiceRule, NumberRule

KEY = "block_table"
REQUESTS = ("A", "B", "C")
REQUEST = ChoiceRule("request", "Request", REQUESTS)
LARGEST_SHUFFLE = 999_999
SHUFFLE = NumberRule("shuffle", "Shuffle", 0, LARGEST_SHUFFLE, 0)
"""0: blocks lie where they were taken. Any other number: an order of its own, the same every time."""

STEP = "step"
DEFAULT_TOKEN = 5


def _written(state: CacheState) -> Mapping[str, Any]:
    sequence = state.sequences.get("A")
    return {"written": 0 if sequence is None else sequence.num_computed_tokens}


TELLING = Telling(
    label="A: {written:token} written",
    figures=(
        Figure("Blocks in memory", "{usage.num_blocks}"),
        Figure("Blocks used", "{usage.num_used_blocks}"),
        Figure("Tokens stored", "{usage.num_written_slots}"),
        Figure("Slots empty", "{usage.num_empty_slots}"),
    ),
    beats=(
        "**A row is a block of the text.** Row 0 is the first, row 1 the second. "
        "The number in the row says where that block lies.",
        "**Press Shuffle.** All {usage.num_blocks:block} change places, and every table follows. "
        "The words still come in the same order.",
    ),
    more=_written,
)


@made_once(maxsize=64)
def requests_in_order(shuffle: int) -> Picture:
    """Values: words of A that are written; with a shuffle one more, in which every block has changed its place."""
    return picture(block_table(shuffle_seed=shuffle or None), TELLING, "Three requests and their block tables")


@made_once(maxsize=1)
def first_picture() -> Picture:
    """The same run for who sees it first: the picture and its sentences, no figures beside it."""
    telling = replace(TELLING, figures=(), beats=())
    return picture(block_table(), telling, "Three requests and their block tables")


def token_rule(state: CacheState, request: str) -> NumberRule | None:
    """Tokens of the request that have a slot to be followed to; None while there are none."""
    sequence = state.sequences.get(request)
    if sequence is None or not sequence.num_computed_tokens:
        return None
    return NumberRule("token", "Token", 0, sequence.num_computed_tokens - 1, DEFAULT_TOKEN)
