"""The lessons, one row each: how to open them, what their slider is, and the worked examples' figures on them."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from streamlit.testing.v1 import AppTest

from course.batch.lesson import LESSON as BATCH
from course.batch.scene import batch
from course.block_table.lesson import LESSON as BLOCK_TABLE
from course.block_table.scene import block_table
from course.growth.lesson import LESSON as GROWTH
from course.lesson import Lesson
from course.reserved_space.lesson import LESSON as RESERVED_SPACE
from course.reserved_space.scene import reservation
from course.scene import Scene
from course.sharing.lesson import LESSON as SHARING
from course.sharing.scene import two_answers
from course.waste_between.lesson import LESSON as WASTE_BETWEEN
from course.waste_between.scene import BLOCK_SIZE, GAPS, fragmentation
from course.what_is_cached.lesson import LESSON as WHAT_IS_CACHED
from course.what_is_cached.scene import what_is_cached
from course.words import EXAMPLE_REPLY, FOX, passage
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

    figures: beside the picture, by key. says: in the page's text, the captions of its pictures included. rows: cells of
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
    """`slider` is the name of the dragged control in the address; `map_key` finds its map in the browser. `opens_at`:
    its value where the address says none. `pictures`: what the first golden's address draws that the slider moves, by
    the map's key; its own map first."""

    page: Lesson
    opens_at: int
    goldens: tuple[Golden, ...]
    pictures: Callable[[], dict[str, Picture]]

    @property
    def lesson(self) -> str:
        return self.page.key

    @property
    def slider(self) -> str:
        """The first of the record is the page's own."""
        return next(iter(self.page.sliders))

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


def _example_in_blocks_of_5() -> Scene:
    return pages(EXAMPLE_REPLY, 5, 1).scene


def _long_reply_in_blocks_of_16() -> Scene:
    return pages(passage(128), 16, 1).scene


def _in_runs_and_on_pages() -> dict[str, Picture]:
    both = both_layouts(GAPS_TEXT, "first_fit", BLOCK_SIZE)
    return {"map_fragmentation": both.in_runs, "map_pages": both.on_pages}


def _reserved_and_in_blocks() -> dict[str, Picture]:
    both = batch_lesson.both_layouts(20, 4)
    return {"map_batch": both.reserved, "map_in_blocks": both.in_blocks}


LESSONS = (
    LessonCase(
        WHAT_IS_CACHED,
        3,
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
        7,
        (
            Golden(
                {"reserved": "16", "tokens": "7"},
                lambda: reservation(16, passage(16)),
                7,
                {"waste.num_held": "16", "waste.num_empty": "9", "waste.percent_empty": "56 %"},
                ("Stored: 7 tokens. Empty: 9 slots, 56 % of the reservation.",),
            ),
            Golden(
                {"reserved": "32", "tokens": "14", "words": "a 14-word reply"},
                lambda: reservation(32, EXAMPLE_REPLY),
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
        9,
        (
            Golden(
                {"done": "9"},
                lambda: fragmentation().contiguous,
                len(GAPS),
                {"waste.free": "24", "longest_run": "10", "refused": "1"},
                ("Free: 24 slots, and at most 10 of them contiguous.", "Free: 4 slots, in 2 blocks."),
                (("9", "24", "10", "4", "F: 24 slots free, longest gap 10, need 20"),),
            ),
        ),
        _in_runs_and_on_pages,
    ),
    LessonCase(
        GROWTH,
        11,
        (
            Golden(
                {"block_size": "4", "tokens": "11"},
                _pages_of_4,
                11,
                {"usage.num_tokens_written": "11", "usage.num_used_blocks": "3", "usage.num_empty_slots": "1"},
                ("11 tokens take 3 blocks of 4 slots. Empty: 1 slot", "At most 3 slots can be empty"),
            ),
            Golden(
                {"block_size": "5", "tokens": "14", "words": "a 14-word reply"},
                _example_in_blocks_of_5,
                14,
                {"usage.num_tokens_written": "14", "usage.num_used_blocks": "3", "usage.num_empty_slots": "1"},
                ("14 tokens take 3 blocks of 5 slots. Empty: 1 slot", "one region of 32 slots would leave 18 slots"),
                (
                    ("one region of 32", "32", "14", "18"),
                    ("3 blocks of 5", "15", "14", "1"),
                    ("0", "0", "5", "0", "Rain started just as the"),
                    ("1", "1", "5", "0", "match reached its final over"),
                    ("2", "2", "4", "1", "and everyone ran inside"),
                ),
            ),
            Golden(
                {"block_size": "16", "tokens": "100", "words": "a long reply"},
                _long_reply_in_blocks_of_16,
                100,
                {"usage.num_tokens_written": "100", "usage.num_used_blocks": "7", "usage.num_empty_slots": "12"},
                ("100 tokens take 7 blocks of 16 slots. Empty: 12 slots", "one region of 128 slots would leave 28"),
            ),
        ),
        lambda: {"map_growth": pages(passage(24), 4, 1)},
    ),
    LessonCase(
        BLOCK_TABLE,
        7,
        (
            Golden(
                {"request": "A", "token": "5"},
                block_table,
                7,
                {"usage.num_blocks": "9", "usage.num_used_blocks": "7", "usage.num_written_slots": "16"},
                ("All 9 blocks move",),
            ),
        ),
        lambda: {"map_block_table": requests_in_order(0)},
    ),
    LessonCase(
        SHARING,
        0,
        (
            Golden(
                {"way": WAY.options[0]},
                two_answers,
                0,
                {"usage.num_shared_blocks": "3", "usage.num_copies_avoided": "3", "counters.num_copies": "0"},
                ("both block tables point to the same 3 blocks",),
            ),
        ),
        lambda: {"map_sharing": shared_beginning(WAY.options[0])},
    ),
    LessonCase(
        BATCH,
        5,
        (
            Golden(
                {"requests": "5"},
                lambda: batch().contiguous,
                5,
                {
                    "reserved.num_held": "100",
                    "in_blocks.num_held": "64",
                    "in_blocks.token_states": "53",
                    "difference": "36 % fewer",
                },
                ("5 requests hold 100 slots", "64 slots in all", "Both store the same 53 tokens", "36 % fewer slots"),
                (("5", "100", "64", "53", "36 % fewer"),),
            ),
        ),
        _reserved_and_in_blocks,
    ),
)


def shown_maps(app: AppTest) -> list[tuple[dict[str, Any], int]]:
    """Of each of the page's maps: its payload and the frame it is asked to stand at."""
    maps = [json.loads(component.proto.json) for component in app.get("bidi_component")]
    return [(data["payload"], data["position"]) for data in maps if "payload" in data]


def shown_map(app: AppTest) -> tuple[dict[str, Any], int]:
    """The page's first map: the one its slider moves."""
    return shown_maps(app)[0]


def captions_at(app: AppTest) -> str:
    """The paragraphs below the maps, without marks."""
    told = (
        caption for payload, position in shown_maps(app) for caption in payload["frames"][position].get("captions", [])
    )
    return "\n".join(told).replace("**", "")


def figures_at(app: AppTest) -> dict[str, str]:
    """The figures beside the first map, by key."""
    payload, position = shown_map(app)
    return {key: text for key, _name, text in payload["frames"][position]["figures"]}
