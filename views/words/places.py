"""Where words are drawn: calls by name, and which of their arguments are words."""

from __future__ import annotations

from views.worded import CHOOSING, LABELLED

Where = int | str | slice
"""An argument by place, by name, or a slice of the positional ones."""

ALL = slice(None)
PLACES: dict[str, tuple[Where, ...]] = {
    **dict.fromkeys(LABELLED | CHOOSING, (0, "label")),
    # marks: text and templates by themselves
    "said": (0,), "tell": (0,), "translated": (0,), "filled": (0,), "Said": (0,),
    # a page and its parts
    "begin": (2,), "examples": (1,), "beats": (ALL,), "end": ("notice", "paper"), "draw_list": (0,), "draw_link": (1,),
    "notice": (0,), "frame_table": (1,), "draw_chart": (2,), "line_chart": (1, 2, 3), "DataFrame": (0,),
    # what lessons say
    "CoursePage": (1, 4), "Route": (0,), "Figure": (0, 1), "Telling": (0, 2, 3, "label", "say", "beats"),
    "Way": (2,), "picture": (2,), "words_of_frame": (1,), "scenes_payload": ("title",), "frames_payload": ("title",),
    "NumberRule": (1,), "TextRule": (1,), "ChoiceRule": (1, 2),
    # questions, the glossary
    "Draft": ("prompt", "right", "because"), "Wrong": (0, 1), "Term": (0, 1, 2, "also"),
    "Detail": (0, 1), "Try": (0, 2),
}  # fmt: skip
