"""Lesson "Reserved space can go unused": one request in one contiguous reservation."""

from __future__ import annotations

import pandas as pd

from course.messages import Message, Percent, Plural, fill
from course.reserved_space.lesson import LESSON
from course.reserved_space.scene import reservation, waste_of_replies
from course.words import EXAMPLE_REPLY, passage
from engine.i18n import N_, _
from views.figures import Figure
from views.lesson_picture import FrameTexts, Picture, picture
from views.server.memoize import memoize
from views.url_values import ChoiceRule, NumberRule

KEY = LESSON.key
LARGEST_RESERVATION = 2048
LONGEST_REPLY = 128
"""Tokens that the slider reaches in a large reservation."""

RESERVATION = NumberRule("reserved", N_("Reservation"), 1, LARGEST_RESERVATION, 16)
TEXTS = {N_("running text"): passage(LONGEST_REPLY), N_("a 14-word reply"): EXAMPLE_REPLY}
TEXT = ChoiceRule("words", N_("Words"), tuple(TEXTS), formerly={"the guide's reply": "a 14-word reply"})
TOKENS = "tokens"
DEFAULT_TOKENS = 7

EXAMPLES: dict[str, dict[str, int | str]] = {
    N_("7 tokens in 16 slots"): {"reserved": 16, "tokens": 7, "words": "running text"},
    N_("14 words in 32 slots"): {"reserved": 32, "tokens": 14, "words": "a 14-word reply"},
    N_("A reply of 60, a limit of 2,048"): {"reserved": 2048, "tokens": 60, "words": "running text"},
}

FRAME_TEXTS = FrameTexts(
    label=Plural("value", "{n} token", "{n} tokens"),
    figures=(
        Figure(N_("Slots reserved"), "{waste.num_held:,}"),
        Figure(N_("Tokens stored"), "{waste.token_states}"),
        Figure(N_("Slots empty"), "{waste.num_empty:,}"),
        Figure(N_("Share empty"), Percent("waste.percent_empty")),
    ),
    say=(
        Message(
            N_("{value} stored, one slot after the other. Empty: {num_empty}."),
            value=Plural("value", "{n} token", "{n} tokens"),
            num_empty=Plural("waste.num_empty", "{n} slot", "{n} slots"),
        ),
    ),
    captions=(
        N_("**Drag the slider.** Each token takes the next slot of the region, in order."),
        Message(
            N_(
                "The request holds {num_held} from its first token to its last. Stored: {value}. "
                "Empty: {num_empty}, {percent_empty} of the reservation."
            ),
            num_held=Plural("waste.num_held", "{n} slot", "{n} slots"),
            value=Plural("value", "{n} token", "{n} tokens"),
            num_empty=Plural("waste.num_empty", "{n} slot", "{n} slots"),
            percent_empty=Percent("waste.percent_empty"),
        ),
        N_("Until the request ends, no other request can use them."),
    ),
)


@memoize(maxsize=1)
def replies_frame() -> pd.DataFrame:
    """One row a reply: what it stores in a reservation for the longest, and what it leaves empty."""
    return pd.DataFrame(
        {
            N_("Tokens of the reply"): of.token_states,
            N_("Slots reserved"): of.num_held,
            N_("Slots empty"): of.num_empty,
            N_("Share empty"): fill(Percent("of.percent_empty"), {"of": of}),
        }
        for of in waste_of_replies()
    )


@memoize(maxsize=64)
def reserved_space(num_reserved: int, words: str) -> Picture:
    """Values: tokens stored, 0 to what the reservation and the text allow."""
    text = TEXTS[words][:num_reserved]
    return picture(reservation(num_reserved, text), FRAME_TEXTS, _("One request in one reservation"))
