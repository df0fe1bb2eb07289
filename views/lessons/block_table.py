"""Lesson "Keep pages in order": three requests whose blocks lie anywhere, and one token followed to its slot."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from course.block_table.lesson import LESSON
from course.block_table.page_table import COUNTERPARTS
from course.block_table.scene import block_table, chat_requests
from course.messages import Plural
from engine.i18n import N_, _
from engine.trace.state import CacheState
from engine.trace.usage import block_table_of
from views.figures import Figure
from views.lesson_picture import FrameTexts, Picture, picture
from views.server.memoize import memoize
from views.url_values import ChoiceRule, NumberRule

KEY = LESSON.key
REQUESTS = ("A", "B", "C")
STORIES, CHAT = N_("three stories"), N_("three chat requests")
SCENE = ChoiceRule("requests", N_("Requests"), (STORIES, CHAT))
REQUEST = ChoiceRule("request", N_("Request"), REQUESTS)
LARGEST_SHUFFLE = 999_999
SHUFFLE = NumberRule("shuffle", N_("Shuffle"), 0, LARGEST_SHUFFLE, 0)
"""0: blocks lie where they were taken. Any other number: an order of its own, the same every time."""

STEP = "step"
DEFAULT_TOKEN = 5


def _written(state: CacheState) -> Mapping[str, Any]:
    sequence = state.sequences.get("A")
    return {"written": 0 if sequence is None else sequence.num_computed_tokens}


FRAME_TEXTS = FrameTexts(
    label=Plural("written", "A: {n} token written", "A: {n} tokens written"),
    figures=(
        Figure(N_("Blocks in memory"), "{usage.num_blocks}"),
        Figure(N_("Blocks used"), "{usage.num_used_blocks}"),
        Figure(N_("Tokens stored"), "{usage.num_written_slots}"),
        Figure(N_("Slots empty"), "{usage.num_empty_slots}"),
    ),
    captions=(
        N_(
            "**A row is a block of the text.** Row 0 is the first, row 1 the second. The number in the row "
            "says where that block is in memory."
        ),
        Plural(
            "usage.num_blocks",
            "**Press Shuffle.** {n} block moves, and every block table is updated. The words stay in the same order.",
            "**Press Shuffle.** All {n} blocks move, and every block table is updated. The words stay in the "
            "same order.",
        ),
    ),
    more=_written,
)


@memoize(maxsize=64)
def requests_in_order(shuffle: int, requests: str = STORIES) -> Picture:
    """Values: steps; with a shuffle one more, in which every block has changed its place."""
    make = chat_requests if requests == CHAT else block_table
    return picture(make(shuffle_seed=shuffle or None), FRAME_TEXTS, _("Three requests and their block tables"))


def token_rule(state: CacheState, request: str) -> NumberRule | None:
    """Tokens of the request that have a slot to be followed to; None while there are none."""
    sequence = state.sequences.get(request)
    if sequence is None or not sequence.num_computed_tokens:
        return None
    return NumberRule("token", N_("Token"), 0, sequence.num_computed_tokens - 1, DEFAULT_TOKEN)


def counterparts() -> pd.DataFrame:
    """What is what in an operating system and in PagedAttention."""
    pairs = ((_(system), _(paged)) for system, paged in COUNTERPARTS)
    return pd.DataFrame({N_("Operating system"): system, N_("Paged attention"): paged} for system, paged in pairs)


def as_page_table(state: CacheState, request: str) -> pd.DataFrame:
    """The request's block table as an operating system would write it down, its pages being the engine's blocks."""
    rows = block_table_of(state, request)
    return pd.DataFrame({N_("Virtual page"): row.logical_index, N_("Page frame"): row.block_id} for row in rows)


def as_block_table(state: CacheState, request: str) -> pd.DataFrame:
    """The request's block table: two columns."""
    rows = block_table_of(state, request)
    return pd.DataFrame({N_("Logical block"): row.logical_index, N_("Physical block"): row.block_id} for row in rows)
