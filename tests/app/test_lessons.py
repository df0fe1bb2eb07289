"""Lessons without a browser: worked examples, every number a field of the fold, values that are kept, questions."""

from __future__ import annotations

import ast
import re
from html import unescape

import pytest
from streamlit.testing.v1 import AppTest

from course.messages import Percent, fill
from course.pages import lesson_by_key
from course.words import passage
from engine import Engine, EngineConfig
from engine.baselines.fragmentation import longest_free_extent, waste
from engine.components import build_components
from engine.model.weights.load import load_model
from engine.trace.usage import usage_of
from tests.app.conftest import OpenPage
from tests.helpers.app_html import all_html, sentences
from tests.helpers.app_server import ROOT
from tests.helpers.lessons import LESSONS, Golden, LessonCase, captions_at, figures_at, shown_map, shown_maps
from tests.helpers.replay_frames import FrameReader, picture_of
from tests.helpers.texts import literal_text
from views.lessons.growth import PLACES, pages
from views.lessons.waste_between import both_layouts
from views.lessons.what_is_cached import running_model

GOLDENS = [(case, golden) for case in LESSONS for golden in case.goldens]
each_golden = pytest.mark.parametrize(("case", "golden"), GOLDENS, ids=lambda x: getattr(x, "name", ""))
each_lesson = pytest.mark.parametrize("case", LESSONS, ids=lambda case: case.name)


def plain_text(app: AppTest) -> str:
    """What the page and its pictures say, without marks."""
    return unescape(re.sub(r"<[^>]*>", "", all_html(app))) + "\n" + captions_at(app)


def rows(app: AppTest) -> list[tuple[str, ...]]:
    """The rows of every table on the page."""
    cells = (re.findall(r"<td>(.*?)</td>", row) for row in re.findall(r"<tr>(.*?)</tr>", all_html(app), re.DOTALL))
    return [tuple(map(unescape, row)) for row in cells]


def address(app: AppTest) -> dict[str, str]:
    """The values in the address, however AppTest holds them."""
    return {name: raw if isinstance(raw, str) else raw[0] for name, raw in app.query_params.items()}


def open_lesson(open_page: OpenPage, case: LessonCase, **query: str) -> AppTest:
    app = open_page(case.page.file, **query)
    assert not app.exception
    return app


@each_golden
def test_the_worked_examples_figures_are_on_the_page(open_page: OpenPage, case: LessonCase, golden: Golden) -> None:
    app = open_lesson(open_page, case, **golden.query)
    shown = figures_at(app)
    assert {key: shown[key] for key in golden.figures} == golden.figures
    for sentence in golden.says:
        assert sentence in plain_text(app)
    assert set(golden.rows) <= set(rows(app))


@each_golden
def test_every_frame_is_the_fold_and_every_figure_a_field_of_it(
    open_page: OpenPage, case: LessonCase, golden: Golden
) -> None:
    payload, position = shown_map(open_lesson(open_page, case, **golden.query))
    scene, reader = golden.scene(), FrameReader()
    assert len(payload["frames"]) == len(scene.values)
    assert scene.values[position] == golden.value
    for frame, value in zip(payload["frames"], scene.values, strict=True):
        state = scene.at(value)
        reader.apply(frame)
        assert reader.picture() == picture_of(state)
        counts = {"waste": waste(state), "usage": usage_of(state), "longest_run": longest_free_extent(state)}
        for key, _name, text in frame["figures"]:
            if key.split(".")[0] in counts:
                shown = Percent(key) if text.endswith("%") else f"{{{key}:.0f}}"
                assert text.replace(",", "") == fill(shown, counts), key


@each_lesson
def test_templates_hold_no_number_and_are_filled_from_the_fold(open_page: OpenPage, case: LessonCase) -> None:
    picture, golden = case.picture, case.goldens[0]
    templates = picture.texts.captions
    assert templates
    assert [t for t in templates if re.search(r"\d", literal_text(t)) and "Row 0" not in t] == []
    told = [fill(template, picture.facts(golden.value)) for template in templates]
    text = plain_text(open_lesson(open_page, case, **golden.query))
    assert [sentence for sentence in told if sentence.replace("**", "") not in text] == []


@each_lesson
def test_text_of_the_page_holds_no_number_of_the_scene(case: LessonCase) -> None:
    """What a page says of its own is words; numbers reach it through facts."""
    allowed = "Try 1 and 64 above|20 to 26 %|section 7.1|Counting starts at 0"
    words = [re.sub(allowed, "", literal_text(template)) for template in templates_of(case.page.file)]
    assert [sentence for sentence in words if re.search(r"\d", sentence)] == []


def templates_of(file: str) -> list[str]:
    """The words that a page hands to `captions`."""
    calls = [node for node in ast.walk(ast.parse((ROOT / file).read_text("utf-8"))) if isinstance(node, ast.Call)]
    captions = [call for call in calls if isinstance(call.func, ast.Attribute) and call.func.attr == "captions"]
    words = [part.value for call in captions for part in ast.walk(call) if isinstance(part, ast.Constant)]
    return [word for word in words if isinstance(word, str)]


@each_lesson
def test_a_lesson_opens_at_its_problem_or_its_first_tokens(open_page: OpenPage, case: LessonCase) -> None:
    _payload, position = shown_map(open_lesson(open_page, case))
    assert case.picture.values[position] == case.opens_at


BAD_VALUES = [("-1", "low"), ("1e9", "high"), ("abc", "default"), ("NaN", "default")]


@each_lesson
@pytest.mark.parametrize(("raw", "becomes"), BAD_VALUES)
@pytest.mark.first_case
def test_a_bad_position_in_the_url_is_clamped_with_a_note(
    open_page: OpenPage, case: LessonCase, raw: str, becomes: str
) -> None:
    values = case.goldens[0].scene().values
    expected = {"low": values[0], "high": values[-1], "default": case.opens_at}[becomes]
    app = open_lesson(open_page, case, **{case.slider: raw})
    _payload, position = shown_map(app)
    assert values[position] == expected
    assert address(app)[case.slider] == str(expected)
    assert any(f"'{raw}'" in sentence for sentence in sentences(app))


@each_lesson
def test_values_survive_a_visit_to_other_pages(open_page: OpenPage, case: LessonCase) -> None:
    value = case.goldens[0].scene().values[2]
    app = open_lesson(open_page, case, seed="5", **{case.slider: str(value)})
    before = shown_map(app)[1], prompt(app)
    for other in ("pages/home.py", "pages/live_engine.py"):
        app.query_params.clear()
        app.switch_page(other).run()
    app.query_params.clear()
    app.switch_page(case.page.file).run().run()
    assert (shown_map(app)[1], prompt(app)) == before
    assert address(app)[case.slider] == str(value)


@each_lesson
def test_the_examples_can_be_chosen_and_undone_by_choosing_another(open_page: OpenPage, case: LessonCase) -> None:
    app = open_lesson(open_page, case)
    for button in [b for b in app.button if str(b.key).startswith("example_")]:
        button.click().run()
        assert not app.exception
        assert not sentences(app)


# ---- predict, then reveal -----------------------------------------------------------------------------


def prompt(app: AppTest) -> str:
    [words] = re.findall(r'<p class="pv-ask"[^>]*>(.*?)</p>', all_html(app))
    return unescape(re.sub(r"<[^>]*>", "", words))


def verdict(app: AppTest) -> tuple[str, str]:
    [(kind, words)] = re.findall(r'data-verdict="(\w+)">(.*?)</p>', all_html(app))
    return kind, unescape(re.sub(r"<[^>]*>", "", words))


@each_lesson
def test_the_seed_in_the_url_reproduces_the_question(open_page: OpenPage, case: LessonCase) -> None:
    asked = lesson_by_key(case.lesson).question(7)
    app = open_lesson(open_page, case, seed="7")
    assert prompt(app) == asked.prompt.replace("\n", " ")
    [radio] = app.radio
    assert radio.options == [choice.text for choice in asked.choices]


@each_lesson
def test_each_choice_is_explained_only_after_it_is_chosen(open_page: OpenPage, case: LessonCase) -> None:
    asked = lesson_by_key(case.lesson).question(0)
    app = open_lesson(open_page, case)
    assert verdict(app) == ("none", "")
    for index, choice in enumerate(asked.choices):
        app.radio[0].set_value(index).run()
        mark = "right" if choice.is_right else "wrong"
        assert verdict(app) == (mark, f"{'Right.' if choice.is_right else 'Not quite.'} {choice.why}")


@each_lesson
def test_another_question_is_the_next_seed_and_starts_unanswered(open_page: OpenPage, case: LessonCase) -> None:
    app = open_lesson(open_page, case)
    app.radio[0].set_value(0).run()
    app.button(key=f"another_{case.lesson}").click().run()
    assert prompt(app) == lesson_by_key(case.lesson).question(1).prompt.replace("\n", " ")
    assert address(app)["seed"] == "1"
    assert verdict(app) == ("none", "")


# ---- the reader's own requests ------------------------------------------------------------------------


def test_requests_are_added_finished_and_undone(open_page: OpenPage) -> None:
    app = open_page("pages/waste_between.py", do="A8 B4")
    assert app.pills[0].options == ["A", "B"]
    app.number_input(key="fragmentation_length").set_value(20).run()
    app.button(key="add_request").click().run()
    assert address(app) == {"do": "A8 B4 C20", "length": "20"}
    assert shown_map(app)[1] == 3, "at the end, as the address without a place says"
    app.pills[0].set_value("A").run()
    assert address(app)["do"] == "A8 B4 C20 -A"
    assert figures_at(app)["waste.free"] == "8"
    assert app.pills[0].options == ["B", "C"]
    app.button(key="undo_action").click().run()
    assert (address(app)["do"], figures_at(app)["waste.free"]) == ("A8 B4 C20", "0")


def test_each_action_is_described_in_a_sentence_in_both_layouts() -> None:
    both = both_layouts("A5 B9 C30 -C", "buddy", 2)
    assert [frame["say"] for frame in both.in_runs.payload["frames"]] == [
        ["Memory is empty."],
        ["A asks for 5 contiguous slots and gets 8."],
        ["B asks for 9 contiguous slots and gets 16."],
        ["C asks for 30 slots and is refused: 8 slots free, longest gap 8, need 32."],
        ["C ends; it held nothing."],
    ]
    assert [frame["say"] for frame in both.on_pages.payload["frames"]][1:] == [
        ["A asks for 5 slots and takes 3 blocks."],
        ["B asks for 9 slots and takes 5 blocks."],
        ["C asks for 30 slots and is refused: it needs 15 blocks, 8 free."],
        ["C ends; it held nothing."],
    ]


def test_actions_that_cannot_be_replayed_are_replaced_with_a_reason(open_page: OpenPage) -> None:
    app = open_page("pages/waste_between.py", do="<b>A0")
    assert figures_at(app)["longest_run"] == "10"
    assert any("this one is '<b>A0'" in sentence for sentence in sentences(app))


def test_typed_words_fill_the_blocks_unchanged(open_page: OpenPage) -> None:
    app = open_page("pages/growth.py", words="my own", text="<b>$5</b> :red[x] **y** `z`", block_size="2", tokens="4")
    assert ("<b>$5</b> :red[x]" in {row[-1] for row in rows(app)}) and "**y** `z`" in {row[-1] for row in rows(app)}


def test_a_chat_continues_in_blocks_where_no_gap_is_long_enough(open_page: OpenPage) -> None:
    app = open_page("pages/waste_between.py", do="A23 B21 C23 -A D33", requests="three chat requests")
    assert "D asks for 33 slots and is refused: 52 slots free, longest gap 29, need 33." in shown_sentences(app)
    assert "D asks for 33 slots and takes 17 blocks." in shown_sentences(app)


def shown_sentences(app: AppTest) -> list[str]:
    return [sentence for payload, position in shown_maps(app) for sentence in payload["frames"][position]["say"]]


def test_replies_of_three_lengths_under_one_limit(open_page: OpenPage) -> None:
    cells = re.findall(r"<td>(.*?)</td>", all_html(open_page("pages/reserved_space.py")))
    assert cells[-12:] == [
        *("12", "2048", "2036", "99 %"), *("60", "2048", "1988", "97 %"), *("900", "2048", "1148", "56 %"),
    ]  # fmt: skip


def test_scattered_blocks_hold_the_same_tokens_as_blocks_in_order(open_page: OpenPage) -> None:
    in_order, scattered = (open_page("pages/growth.py", places=places) for places in ("in order", "scattered"))
    assert figures_at(in_order) == figures_at(scattered) == {
        "usage.num_tokens_written": "11", "usage.num_used_blocks": "3", "usage.num_empty_slots": "1",
    }  # fmt: skip
    tables = [pages(passage(24), 4, 1, places).scene.at(11).sequences["A"].block_table for places in PLACES.options]
    assert list(tables[0]) == [0, 1, 2] != list(tables[1])


def test_a_shorter_reservation_clamps_the_tokens(open_page: OpenPage) -> None:
    app = open_page("pages/reserved_space.py", reserved="16", tokens="12")
    app.number_input(key="reservation_reserved").set_value(5).run()
    assert figures_at(app)["waste.token_states"] == "5"
    assert not any("was changed to" in sentence for sentence in sentences(app)), "nobody typed a wrong number"


def test_a_corrected_value_is_shown_until_the_range_changes(open_page: OpenPage) -> None:
    app = open_page("pages/reserved_space.py", reserved="1", tokens="7")
    assert "Tokens must be a whole number from 0 to 1: '7' was changed to 1." in sentences(app)
    app.number_input(key="reservation_reserved").set_value(2048).run()
    assert figures_at(app)["waste.token_states"] == "1"
    assert not any("was changed to" in sentence for sentence in sentences(app))


@pytest.mark.parametrize("file", ["pages/growth.py", "pages/reserved_space.py"])
def test_a_link_of_an_earlier_version_opens_what_it_did(open_page: OpenPage, file: str) -> None:
    app = open_page(file, words="the guide's reply", tokens="14")
    [words] = [box for box in app.selectbox if "a 14-word reply" in box.options]
    assert words.value == "a 14-word reply"
    assert not [sentence for sentence in sentences(app) if "in the address" in sentence]


def test_a_share_below_100_percent_is_not_rounded_to_100(open_page: OpenPage) -> None:
    app = open_page("pages/reserved_space.py", reserved="2048", tokens="1")
    assert figures_at(app)["waste.percent_empty"] == "99.9 %"
    assert "Empty: 2,047 slots, 99.9 % of the reservation." in captions_at(app)


def test_the_row_of_the_running_model_counts_its_kv_elements() -> None:
    """Keys and values may be kept in another number type than the model computes in."""
    weights = load_model("tiny-random")
    config = EngineConfig(model="tiny-random", kv_dtype="bfloat16")
    info = Engine(config, build_components(config, weights)).trace.info
    facts, num_bytes = running_model(weights, info)
    assert (weights.dtype, num_bytes) == ("float32", 2)
    assert facts.kv_bytes_per_token(num_bytes) == info["kv_bytes_per_token"]
