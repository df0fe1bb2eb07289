"""The lessons, one row each: how to open them, what their slider is, and the guides' figures on them."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from streamlit.testing.v1 import AppTest

from engine.scenes.fragmentation import GAPS, fragmentation
from engine.scenes.reservation import reservation
from engine.scenes.scene import Scene
from engine.scenes.what_is_cached import what_is_cached
from engine.scenes.words import FOX, GUIDE_REPLY, passage
from views.course import GROWTH, RESERVED_SPACE, WASTE_BETWEEN, WHAT_IS_CACHED, CoursePage
from views.lessons.growth import pages

Query = dict[str, str]


@dataclass(frozen=True)
class Golden:
    """An address, the scene it replays, and what page and picture must show there.

    figures: beside the picture, by key. says: in the page's text. tables: cells of a row, in order.
    """

    query: Query
    scene: Callable[[], Scene]
    value: int
    figures: dict[str, str] = field(default_factory=dict)
    says: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()


@dataclass(frozen=True)
class LessonCase:
    """`slider` is the name of the dragged control in the address; `map_key` finds the map in the browser."""

    page: CoursePage
    lesson: str
    slider: str
    goldens: tuple[Golden, ...]

    @property
    def map_key(self) -> str:
        return f"map_{self.lesson}"

    @property
    def name(self) -> str:
        return str(self.page.url_path)


def _pages_of_4() -> Scene:
    return pages(passage(24), 4, 1).scene


def _guide_in_blocks_of_5() -> Scene:
    return pages(GUIDE_REPLY, 5, 1).scene


LESSONS = (
    LessonCase(
        WHAT_IS_CACHED,
        "what_is_cached",
        "tokens",
        (
            Golden(
                {"tokens": "7"},
                lambda: what_is_cached(FOX[:3], (*FOX[3:], *passage(13))[:13]),
                7,
                {"usage.num_tokens_known": "8", "usage.num_tokens_written": "7", "cache_size": "158 KB"},
                ("8 tokens known, 7 written.", "In SmolLM2-135M, one token takes 22.5 KB."),
                (("OPT-13B", "40", "40", "40", "128", "2", "800 KB", "62,991"),),
            ),
        ),
    ),
    LessonCase(
        RESERVED_SPACE,
        "reservation",
        "tokens",
        (
            Golden(
                {"reserved": "16", "tokens": "7"},
                lambda: reservation(16, passage(16)),
                7,
                {"waste.num_held": "16", "waste.num_empty": "9", "waste.percent_empty": "56 %"},
                ("Stored: 7 tokens. Empty: 9 slots, 56 % of the reservation.",),
            ),
            Golden(
                {"reserved": "32", "tokens": "14", "words": "the guide's reply"},
                lambda: reservation(32, GUIDE_REPLY),
                14,
                {"waste.num_held": "32", "waste.token_states": "14", "waste.num_empty": "18"},
                ("Empty: 18 slots",),
            ),
            Golden(
                {"reserved": "2048", "tokens": "60"},
                lambda: reservation(2048, passage(128)),
                60,
                {"waste.num_held": "2,048", "waste.token_states": "60", "waste.num_empty": "1,988"},
                ("Stored: 60 tokens. Empty: 1988 slots",),
            ),
        ),
    ),
    LessonCase(
        WASTE_BETWEEN,
        "fragmentation",
        "done",
        (
            Golden(
                {"done": "9"},
                lambda: fragmentation().contiguous,
                len(GAPS),
                {"waste.free": "24", "longest_run": "10", "refused": "1"},
                ("Free: 24 slots, and at most 10 of them side by side.", "Free: 4 slots, in 2 blocks."),
                (("9", "24", "10", "4", "F: 24 slots free, longest run 10, need 20"),),
            ),
        ),
    ),
    LessonCase(
        GROWTH,
        "growth",
        "tokens",
        (
            Golden(
                {"block_size": "4", "tokens": "11"},
                _pages_of_4,
                11,
                {"usage.num_tokens_written": "11", "usage.num_used_blocks": "3", "usage.num_empty_slots": "1"},
                ("11 tokens take 3 blocks of 4 slots. Empty: 1 slot",),
            ),
            Golden(
                {"block_size": "5", "tokens": "14", "words": "the guide's reply"},
                _guide_in_blocks_of_5,
                14,
                {"usage.num_tokens_written": "14", "usage.num_used_blocks": "3", "usage.num_empty_slots": "1"},
                ("14 tokens take 3 blocks of 5 slots. Empty: 1 slot", "one run of 32 slots would leave 18 slots empty"),
                (
                    ("one run of 32", "32", "14", "18"),
                    ("3 blocks of 5", "15", "14", "1"),
                    ("0", "1", "5", "0", "Rain started just as the"),
                    ("1", "3", "5", "0", "match reached its final over"),
                    ("2", "0", "4", "1", "and everyone ran inside"),
                ),
            ),
        ),
    ),
)


def shown_map(app: AppTest) -> tuple[dict[str, Any], int]:
    """The payload of the page's first map, and the frame it is asked to stand at."""
    data = json.loads(app.get("bidi_component")[0].proto.json)
    return data["payload"], data["position"]


def figures_at(app: AppTest) -> dict[str, str]:
    """The figures beside the first map, by key."""
    payload, position = shown_map(app)
    return {key: text for key, _name, text in payload["frames"][position]["figures"]}
