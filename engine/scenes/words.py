"""Words to fill blocks with, one token each."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import cycle, islice

MAX_WORDS = 256
"""Words of one request in a scene: as many as a page can draw."""


def words_of(text: str) -> tuple[str, ...]:
    """The text cut at blanks."""
    return tuple(text.split())


GUIDE_REPLY = words_of("Rain started just as the match reached its final over and everyone ran inside")
"""The worked example of the guide "Paged attention in LLMs": a reply of 14 words."""

FOX = words_of("The red fox crossed the quiet field")
"""The words of the block-table picture of the guide "PagedAttention"."""

_PASSAGE = words_of(
    "One lamp came on above the bakery and the street smelled of bread long before the first tram "
    "rang its bell at the corner where two cats watched a boy sweep snow from every step"
)


def passage(num_words: int) -> tuple[str, ...]:
    """`num_words` words of running text; it starts again where it ends."""
    return tuple(islice(cycle(_PASSAGE), num_words))


def require_words(words: Sequence[str], at_least: int = 1) -> None:
    """Raises ValueError with a sentence when there are too few or too many words for a scene."""
    if not at_least <= len(words) <= MAX_WORDS:
        raise ValueError(f"This scene takes {at_least} to {MAX_WORDS} words; these are {len(words)}.")
