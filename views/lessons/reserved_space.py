"""Lesson "Reserved space can go unused": one request in one contiguous reservation."""

from __future__ import annotations

from engine.scenes.reservation import reservation
from engine.scenes.words import GUIDE_REPLY, passage
from views.lesson_picture import Picture, Telling, picture
from views.made_once import made_once
from views.told import Figure
from views.url_values import ChoiceRule, NumberRule

KEY = "reservation"
LARGEST_RESERVATION = 2048
LONGEST_REPLY = 128
"""Tokens that the slider reaches in a large reservation."""

RESERVATION = NumberRule("reserved", "Reservation", 1, LARGEST_RESERVATION, 16)
TEXTS = {"running text": passage(LONGEST_REPLY), "the guide's reply": GUIDE_REPLY}
TEXT = ChoiceRule("words", "Words", tuple(TEXTS))
TOKENS = "tokens"
DEFAULT_TOKENS = 7

EXAMPLES: dict[str, dict[str, int | str]] = {
    "7 tokens in 16 slots": {"reserved": 16, "tokens": 7, "words": "running text"},
    "14 words in 32 slots": {"reserved": 32, "tokens": 14, "words": "the guide's reply"},
    "A reply of 60, a limit of 2,048": {"reserved": 2048, "tokens": 60, "words": "running text"},
}

TELLING = Telling(
    label="{value:token}",
    figures=(
        Figure("Slots reserved", "{waste.num_held:,}"),
        Figure("Tokens stored", "{waste.token_states}"),
        Figure("Slots empty", "{waste.num_empty:,}"),
        Figure("Share empty", "{waste.percent_empty:.0f} %"),
    ),
    say=("{value:token} stored, each in the next slot of the run. Empty: {waste.num_empty:slot}.",),
    beats=(
        "**Drag the slider.** Each token takes the next slot of the run, in order.",
        "The request holds {waste.num_held:slot} from its first token to its last. "
        "Stored: {value:token}. Empty: {waste.num_empty:slot}, {waste.percent_empty:.0f} % of the reservation.",
        "Until the request ends, no other request may use them.",
    ),
)


@made_once(maxsize=64)
def reserved_space(num_reserved: int, words: str) -> Picture:
    """Values: tokens stored, 0 to what the reservation and the text allow."""
    text = TEXTS[words][:num_reserved]
    return picture(reservation(num_reserved, text), TELLING, "One request in one reservation")
