"""The lessons, one row each: how to open them, what their slider is, and the guides' figures on them."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from streamlit.testing.v1 import AppTest

from engine.scenes.batch import batch
from engine.scenes.block_table import block_table
from engine.scenes.fragmentation import BLOCK_SIZE, GAPS, fragmentation
from engine.scenes.reservation import reservation
from engine.scenes.scene import Scene
from engine.scenes.sharing import two_answers
from engine.scenes.what_is_cached import what_is_cached
from engine.scenes.words import FOX, GUIDE_REPLY, passage
from views.course import (
    BATCH,
    BLOCK_TABLE,
    GROWTH,
    RESERVED_SPACE,
    SHARING,
    WASTE_BETWEEN,
    WHAT_IS_CACHED,
    CoursePage,
)
from views.lesson_picture import Picture
from views.lessons import batch as batch_lesson
from views.lessons.block_table import requests_in_order
from views.lessons.growth import pages
from views.lessons.reserved_space import reserved_space
from views.lessons.sharing import WAY, shared_beginning
from views.lessons.waste_between import GAPS_TEXT, both_layouts
from views.lessons.what_is_cached import cached

Query = dict[str, str]


@dataclass(frozen=True)
class Golden:
    """An address, the scene it replays, and what page and picture must show there.

    figures: beside the picture, by key. says: in the page's text, the beats of its pictures included. rows: cells of
    a table's row, in order.
    """

    query: Query
    scene: Callable[[], Scene]
    value: int
    figures: dict[str, str] = field(default_factory=dict)
    says: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()


@dataclass(frozen=True)
class LessonCase:
    """`slider` is the name of the dragged control in the address; `map_key` finds its map in the browser. `pictures`:
    what the first golden's address draws that the slider moves, by the map's key; its own map first."""

    page: CoursePage
    lesson: str
    slider: str
    goldens: tuple[Golden, ...]
    pictures: Callable[[], dict[str, Picture]]

    @property
    def picture(self) -> Picture:
        return self.pictures()[self.map_key]

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


def _in_runs_and_on_pages() -> dict[str, Picture]:
    both = both_layouts(GAPS_TEXT, "first_fit", BLOCK_SIZE)
    return {"map_fragmentation": both.in_runs, "map_pages": both.on_pages}


def _reserved_and_in_blocks() -> dict[str, Picture]:
    both = batch_lesson.both_layouts(20, 4)
    return {"map_batch": both.reserved, "map_in_blocks": both.in_blocks}


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
        lambda: {"map_what_is_cached": cached("SmolLM2-135M", "16 bits")},
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
                ("Stored: 60 tokens. Empty: 1,988 slots",),
            ),
        ),
        lambda: {"map_reservation": reserved_space(16, "running text")},
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
        _in_runs_and_on_pages,
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
        lambda: {"map_growth": pages(passage(24), 4, 1)},
    ),
    LessonCase(
        BLOCK_TABLE,
        "block_table",
        "step",
        (
            Golden(
                {"request": "A", "token": "5"},
                block_table,
                7,
                {"usage.num_blocks": "9", "usage.num_used_blocks": "7", "usage.num_written_slots": "16"},
                ("All 9 blocks change places",),
            ),
        ),
        lambda: {"map_block_table": requests_in_order(0)},
    ),
    LessonCase(
        SHARING,
        "sharing",
        "step",
        (
            Golden(
                {"way": WAY.options[0]},
                two_answers,
                6,
                {"usage.num_shared_blocks": "3", "usage.num_copies_avoided": "3", "counters.num_copies": "0"},
                ("both answers name the same 3 blocks",),
            ),
        ),
        lambda: {"map_sharing": shared_beginning(WAY.options[0])},
    ),
    LessonCase(
        BATCH,
        "batch",
        "requests",
        (
            Golden(
                {"requests": "5"},
                lambda: batch().contiguous,
                5,
                {
                    "reserved.num_held": "100",
                    "in_blocks.num_held": "64",
                    "in_blocks.token_states": "53",
                    "percent_fewer": "36 %",
                },
                ("5 requests hold 100 slots", "64 slots in all", "Both store the same 53 tokens", "36 % fewer slots"),
                (("5", "100", "64", "53", "36.0"),),
            ),
        ),
        _reserved_and_in_blocks,
    ),
)


def shown_maps(app: AppTest) -> list[tuple[dict[str, Any], int]]:
    """Of each of the page's maps: its payload and the frame it is asked to stand at."""
    maps = [json.loads(component.proto.json) for component in app.get("bidi_component")]
    return [(data["payload"], data["position"]) for data in maps]


def shown_map(app: AppTest) -> tuple[dict[str, Any], int]:
    """The page's first map: the one its slider moves."""
    return shown_maps(app)[0]


def beats_at(app: AppTest) -> str:
    """The paragraphs below the maps, without marks."""
    told = (beat for payload, position in shown_maps(app) for beat in payload["frames"][position].get("beats", []))
    return "\n".join(told).replace("**", "")


def figures_at(app: AppTest) -> dict[str, str]:
    """The figures beside the first map, by key."""
    payload, position = shown_map(app)
    return {key: text for key, _name, text in payload["frames"][position]["figures"]}
