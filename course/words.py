"""Words to fill blocks with, one token each."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import cycle, islice

from engine.i18n import _

MAX_WORDS = 256
"""Words of one request in a scene: as many as a page can draw."""


def words_of(text: str) -> tuple[str, ...]:
    """The text split at spaces."""
    return tuple(text.split())


EXAMPLE_REPLY = words_of("Rain started just as the match reached its final over and everyone ran inside")
"""The reply of 14 words in this course's worked example: 14 tokens in a reservation of 32 slots leave 18 empty."""

FOX = words_of("The red fox crossed the quiet field")
"""The words of request A in the picture of three block tables."""

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
        raise ValueError(
            _("This scene takes {at_least} to {max_words} words; these are {num_words}.").format(
                at_least=at_least, max_words=MAX_WORDS, num_words=len(words)
            )
        )
