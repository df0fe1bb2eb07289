"""Lessons 6 to 9 without a browser: the worked examples' figures are on the page, each from the engine's fold."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from course.batch.lesson import LESSON as BATCH
from course.batch.scene import batch, blocks_side_by_side
from course.block_table.lesson import LESSON as BLOCK_TABLE
from course.block_table.scene import block_table, chat_requests
from course.glossary import GLOSSARY
from course.messages import Percent, fill
from course.pages import SUMMARY, lesson_by_key
from course.scene import Scene
from course.sharing.figure_8 import figure_8
from course.sharing.figure_9 import figure_9
from course.sharing.lesson import LESSON as SHARING
from course.sharing.scene import asked_again, copy_on_write, two_answers
from course.words import words_of
from engine.baselines.fragmentation import percent_fewer_held, waste
from engine.trace.usage import address_of, block_table_of, usage_of
from tests.app.conftest import OpenPage
from tests.helpers.app_html import all_html, sentences, table_rows
from tests.helpers.lessons import captions_at
from tests.helpers.replay_frames import FrameReader, picture_of


def shown_map(app: AppTest, title: str) -> dict[str, Any]:
    """What the page sent to the map of that title."""
    maps = [json.loads(element.proto.json) for element in app.get("bidi_component")]
    [shown] = [data for data in maps if data["payload"]["title"].startswith(title)]
    return shown


def shown_frame(app: AppTest, title: str) -> dict[str, Any]:
    shown = shown_map(app, title)
    frame: dict[str, Any] = shown["payload"]["frames"][shown["position"]]
    return frame


def figures(app: AppTest, title: str) -> dict[str, str]:
    return {key: text for key, _name, text in shown_frame(app, title)["figures"]}


def lookup(app: AppTest) -> dict[str, int]:
    """The numbers of the look-up, by the field they show."""
    html = all_html(app)
    names = ("logical_index", "offset", "block_id", "slot")
    return {name: int(html.split(f'data-figure="{name}">')[1].split("<")[0]) for name in names}


# ---- every picture of these pages ----

PICTURES = [
    (BLOCK_TABLE.file, {}, "Three requests", block_table),
    (BLOCK_TABLE.file, {"shuffle": "5"}, "Three requests", lambda: block_table(shuffle_seed=5)),
    (SHARING.file, {}, "Sharing", two_answers),
    (SHARING.file, {"way": "Prefix cache: repeat later"}, "Sharing", asked_again),
    (
        BATCH.file,
        {"show": "KV cache usage"},
        "Blocks used and slots used",
        lambda: blocks_side_by_side((17, 18), 16, 6),
    ),
    (BATCH.file, {"block_size": "5"}, "The same requests", lambda: batch(block_size=5).paged),
    (BATCH.file, {"reserved": "30"}, "One reservation", lambda: batch(num_reserved=30).contiguous),
]


@pytest.mark.parametrize(("file", "query", "title", "make"), PICTURES)
def test_every_frame_is_the_fold_and_every_figure_a_field_of_it(
    open_page: OpenPage, file: str, query: dict[str, str], title: str, make: Callable[[], Scene]
) -> None:
    frames, scene, reader = shown_map(open_page(file, **query), title)["payload"]["frames"], make(), FrameReader()
    assert len(frames) == len(scene.values)
    for frame, value in zip(frames, scene.values, strict=True):
        state = scene.at(value)
        reader.apply(frame)
        assert reader.picture() == picture_of(state)
        counts = {"usage": usage_of(state), "counters": state.counters}
        for key, _name, text in frame["figures"]:
            if key.split(".")[0] in counts:
                shown = Percent(key, decimals=1, of_one=True) if "fraction" in key else f"{{{key}}}"
                assert text == fill(shown, counts), key


# ---- keep pages in order ----


def test_the_worked_examples_table_is_on_the_page(open_page: OpenPage) -> None:
    app = open_page(BLOCK_TABLE.file)
    assert not app.exception
    assert [row[:2] for row in table_rows(app, "A")] == [["0", "6"], ["1", "1"], ["2", "8"]]
    assert figures(app, "Three requests")["usage.num_blocks"] == "9"


@pytest.mark.parametrize(("request_id", "token"), [("A", 0), ("A", 6), ("B", 3), ("C", 2)])
def test_a_token_is_located_with_the_engines_numbers(open_page: OpenPage, request_id: str, token: int) -> None:
    app = open_page(BLOCK_TABLE.file, request=request_id, token=str(token))
    scene = block_table()
    address = address_of(scene.at(scene.values[-1]), request_id, token)
    assert lookup(app) == {name: getattr(address, name) for name in ("logical_index", "offset", "block_id", "slot")}
    assert f"{address.block_id} × {address.block_size} + {address.offset}" in all_html(app)


def test_the_page_table_of_an_operating_system_is_compared(open_page: OpenPage) -> None:
    html = all_html(open_page(BLOCK_TABLE.file))
    for caption, heads in (
        ("Page table of a process", ["Virtual page", "Page frame"]),
        ("Block table of request A", ["Logical block", "Physical block"]),
    ):
        [table] = [part.split("</table>")[0] for part in html.split("<table")[1:] if f"<caption>{caption}<" in part]
        assert re.findall(r"<th[^>]*>(.*?)</th>", table) == heads
        assert re.findall(r"<td>(.*?)</td>", table) == ["0", "6", "1", "1", "2", "8"]


def test_three_chat_requests_have_their_tables(open_page: OpenPage) -> None:
    app = open_page(BLOCK_TABLE.file, requests="three chat requests", request="B")
    frame = chat_requests().at(9)
    assert [row[1] for row in table_rows(app, "B")] == [str(entry.block_id) for entry in block_table_of(frame, "B")]
    assert figures(app, "Three requests")["usage.num_used_blocks"] == "18"


def test_shuffling_changes_the_table_and_not_the_words(open_page: OpenPage) -> None:
    app = open_page(BLOCK_TABLE.file)
    app.button(key="shuffle").click().run()
    scene = block_table(shuffle_seed=1)
    frame = scene.at(scene.values[-1])
    entries = block_table_of(frame, "A")
    assert [row[1] for row in table_rows(app, "A")] == [str(entry.block_id) for entry in entries] != ["6", "1", "8"]
    assert app.query_params["shuffle"] == "1"
    assert lookup(app)["slot"] == address_of(frame, "A", 5).slot
    assert '<span class="pv-piece" dir="auto">quiet</span>' in all_html(app)
    app.button(key="put_back").click().run()
    assert [row[1] for row in table_rows(app, "A")] == ["6", "1", "8"]


def test_a_request_without_computed_tokens_is_reported(open_page: OpenPage) -> None:
    app = open_page(BLOCK_TABLE.file, request="C", step="1")
    assert not app.exception
    assert "C has no tokens in the cache yet. Move the slider to the right." in sentences(app)


def test_a_token_position_past_the_end_is_clamped(open_page: OpenPage) -> None:
    app = open_page(BLOCK_TABLE.file, request="C", token="6")
    assert app.number_input(key="block_table_token").value == 3
    assert lookup(app)["slot"] == address_of(block_table().at(7), "C", 3).slot


# ---- share matching prefixes ----


def test_two_answers_share_three_blocks_and_three_copies_are_avoided(open_page: OpenPage) -> None:
    app = open_page(SHARING.file)
    assert not app.exception
    shown = figures(app, "Sharing")
    assert (shown["usage.num_shared_blocks"], shown["usage.num_copies_avoided"]) == ("3", "3")
    assert "point to the same 3 blocks" in captions_at(app)


@pytest.mark.parametrize(
    "way", ["Prefix cache: three prompts", "Prefix cache: two samples", "Prefix cache: repeat later"]
)
def test_every_sharing_example_is_drawn(open_page: OpenPage, way: str) -> None:
    app = open_page(SHARING.file, way=way)
    assert not app.exception
    assert shown_map(app, "Sharing")["payload"]["title"] == f"Sharing: {way}"


def test_a_link_of_an_earlier_version_opens_what_it_did(open_page: OpenPage) -> None:
    app = open_page(SHARING.file, way="find by content, one prompt")
    assert shown_map(app, "Sharing")["payload"]["title"] == "Sharing: Prefix cache: two samples"
    assert not [sentence for sentence in sentences(app) if "in the address" in sentence]


MINE = "one two three four five six"


@pytest.mark.parametrize(("after", "copied"), [(1, 1), (2, 1), (3, 1), (4, 0), (5, 1)])
def test_a_fork_of_the_readers_words_copies_inside_a_block_only(open_page: OpenPage, after: int, copied: int) -> None:
    app = open_page(SHARING.file, text=MINE, other="else", after=str(after))
    scene = copy_on_write(words_of(MINE), ("else",))[after]
    counted = scene.at(1).counters.num_copies
    assert figures(app, "A fork after")["counters.num_copies"] == str(counted) == str(copied)
    assert ("at a block boundary" in captions_at(app)) is (copied == 0)
    assert shown_frame(app, "A fork after")["label"] == f"fork after {after} word{'s' if after > 1 else ''}"


def test_text_that_cannot_be_forked_is_refused_with_a_reason(open_page: OpenPage) -> None:
    app = open_page(SHARING.file, text="alone")
    assert "A fork needs at least two words: one before it and one after." in sentences(app)
    app = open_page(SHARING.file, text=" ".join(["word"] * 25))
    assert "The picture has room for 24 words; these are 25." in sentences(app)


def test_a_shorter_text_clamps_the_fork_position(open_page: OpenPage) -> None:
    app = open_page(SHARING.file, after="6")
    app.text_input(key="forking_text").set_value("one two three").run()
    assert not app.exception
    assert shown_frame(app, "A fork after")["label"] == "fork after 2 words"


def test_the_papers_figures_end_as_printed(open_page: OpenPage) -> None:
    def last_frame(figure: str, scene: Scene) -> dict[str, str]:
        return figures(open_page(SHARING.file, figure=figure, frame=str(scene.trace.num_steps)), figure)

    fig8 = last_frame("Fig. 8: parallel sampling", figure_8())
    assert (fig8["counters.num_copies"], fig8["usage.num_shared_blocks"]) == ("1", "1")
    fig9 = last_frame("Fig. 9: beam search", figure_9())
    assert (fig9["counters.num_copies"], fig9["usage.num_shared_blocks"]) == ("0", "5")


# ---- memory across a batch ----


def test_five_requests_are_100_64_53_and_36_percent(open_page: OpenPage) -> None:
    app = open_page(BATCH.file)
    assert not app.exception
    both = batch()
    reserved, in_blocks = both.contiguous.at(5), both.paged.at(5)
    assert figures(app, "One reservation") == {
        "reserved.num_held": str(waste(reserved).num_held),
        "in_blocks.num_held": str(waste(in_blocks).num_held),
        "in_blocks.token_states": str(waste(in_blocks).token_states),
        "difference": f"{percent_fewer_held(in_blocks, reserved):.0f} % fewer",
    }
    assert list(figures(app, "One reservation").values()) == ["100", "64", "53", "36 % fewer"]
    assert shown_map(app, "The same requests")["position"] == 5


@pytest.mark.parametrize(("block_size", "reserved", "requests"), [(1, 20, 10), (16, 128, 3), (64, 18, 10)])
def test_the_controls_of_the_batch(open_page: OpenPage, block_size: int, reserved: int, requests: int) -> None:
    app = open_page(BATCH.file, block_size=str(block_size), reserved=str(reserved), requests=str(requests))
    both = batch(num_reserved=reserved, block_size=block_size)
    shown = figures(app, "One reservation")
    assert shown["reserved.num_held"] == str(reserved * requests)
    assert shown["in_blocks.num_held"] == str(usage_of(both.paged.at(requests)).num_held_slots)


@pytest.mark.parametrize(
    ("block_size", "requests", "difference"),
    [(64, 2, "220 % more"), (64, 0, "as many"), (20, 5, "as many"), (1, 1, "75 % fewer")],
)
def test_blocks_that_hold_more_than_reservations_are_reported(
    open_page: OpenPage, block_size: int, requests: int, difference: str
) -> None:
    app = open_page(BATCH.file, block_size=str(block_size), requests=str(requests))
    assert figures(app, "One reservation")["difference"] == difference
    assert shown_frame(app, "The same requests")["captions"][1].endswith(f"Blocks hold {difference} slots.")
    assert ("<td>220 % more</td>" in all_html(app)) is (block_size == 64)


def test_block_usage_and_slot_usage_differ(open_page: OpenPage) -> None:
    app = open_page(BATCH.file, show="KV cache usage")
    assert shown_frame(app, "Blocks used and slots used")["label"] == "1 request", "it opens before the gauge is full"
    shown = figures(open_page(BATCH.file, show="KV cache usage", running="2"), "Blocks used and slots used")
    assert (shown["usage.block_fraction"], shown["usage.slot_fraction"]) == ("66.7 %", "36.5 %")


def test_each_request_stands_in_one_row_with_both_layouts(open_page: OpenPage) -> None:
    html = all_html(open_page(BATCH.file, requests="5"))
    [table] = [part for part in html.split("<table")[1:] if "What each request holds" in part]
    assert re.findall(r"<td>(.*?)</td>", table.split("</table>")[0])[-8:] == [
        "R4",
        "18",
        "20",
        "20",
        "R5",
        "10",
        "20",
        "12",
    ]
    assert "memory holds 10 of them in reservations and 15 in blocks." in html


def test_three_chat_requests_fill_the_batch(open_page: OpenPage) -> None:
    app = open_page(BATCH.file, batch="three chat requests", reserved="32")
    assert list(figures(app, "One reservation").values()) == ["96", "72", "67", "25 % fewer"]
    assert "The same three requests as in lesson 3, Waste between reservations" in " ".join(
        m.value for m in app.markdown
    )


def test_the_charts_are_drawn_from_the_batch(open_page: OpenPage) -> None:
    app = open_page(BATCH.file, block_size="5")
    spec = json.loads(app.get("plotly_chart")[0].proto.spec)
    drawn = {trace["name"]: trace for trace in spec["data"]}
    both = batch(block_size=5)
    expected = [waste(both.paged.at(number)).num_held for number in both.paged.values[1:]]
    assert _numbers(drawn["Slots in blocks"]["y"]) == expected
    assert all(f"<td>{number}</td>" in all_html(app) for number in expected)


def _numbers(column: Any) -> list[int]:
    """Plotly writes long columns as base64."""
    if isinstance(column, list):
        return column
    return [int(value) for value in np.frombuffer(base64.b64decode(column["bdata"]), dtype=column["dtype"])]


# ---- the short version ----


def test_the_summary_shows_the_expected_figures(open_page: OpenPage) -> None:
    app = open_page(SUMMARY.file)
    assert not app.exception
    said = " ".join(text.value for text in app.text)
    for golden in (
        "7 of 16 slots used leave 9 empty (56 %)",
        "60 of 2,048 leave 1,988",
        "Gaps of 8, 6 and 10 slots make 24 free",
        "need 20",
        "11 tokens take 3 blocks of 4 and leave 1 slot empty",
        "A reply of 14 leaves 18 of 32 reserved slots empty, but only 1 of 15 in blocks",
        "0 → 6, 1 → 1, 2 → 8, in a pool of 9 blocks",
        "Two answers share 3 blocks: 3 copies avoided",
        "Five requests with 53 tokens in all hold 100 slots in contiguous reservations and 64 in blocks: 36 % fewer",
    ):
        assert golden in said


def test_the_glossary_has_every_term_once(open_page: OpenPage) -> None:
    html = all_html(open_page(SUMMARY.file))
    assert len({term.name for term in GLOSSARY}) == len(GLOSSARY) == html.count("<dt>")


# ---- questions ----


@pytest.mark.parametrize(
    ("file", "lesson"), [(BLOCK_TABLE.file, "block_table"), (SHARING.file, "sharing"), (BATCH.file, "batch")]
)
def test_the_seed_in_the_url_asks_the_same_question(open_page: OpenPage, file: str, lesson: str) -> None:
    app = open_page(file, seed="7")
    asked = lesson_by_key(lesson).question(7)
    assert app.radio[0].options == [choice.text for choice in asked.choices]
    right = asked.choices.index(asked.right)
    app.radio[0].set_value(right).run()
    assert 'data-verdict="right"' in all_html(app)
    app.button(key=f"another_{lesson}").click().run()
    assert app.query_params["seed"] == "8"
