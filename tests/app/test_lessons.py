"""Lessons without a browser: the guides' figures, every number a field of the fold, values that are kept, questions."""

from __future__ import annotations

import ast
import re
from html import unescape

import pytest
from streamlit.testing.v1 import AppTest

from engine import Engine, EngineConfig
from engine.loading import load_parts
from engine.questions import question
from engine.usage import usage_of
from engine.waste import longest_free_run, waste
from engine.weights import load_model
from tests.app.conftest import OpenPage
from tests.helpers.app_html import all_html, sentences
from tests.helpers.app_server import ROOT
from tests.helpers.lessons import LESSONS, Golden, LessonCase, beats_at, figures_at, shown_map
from tests.helpers.replay_frames import FrameReader, picture_of
from views.lessons.waste_between import both_layouts
from views.lessons.what_is_cached import running_model
from views.told import tell, words_of_template

GOLDENS = [(case, golden) for case in LESSONS for golden in case.goldens]
each_golden = pytest.mark.parametrize(("case", "golden"), GOLDENS, ids=lambda x: getattr(x, "name", ""))
each_lesson = pytest.mark.parametrize("case", LESSONS, ids=lambda case: case.name)


def plain_text(app: AppTest) -> str:
    """What the page and its pictures say, without marks."""
    return unescape(re.sub(r"<[^>]*>", "", all_html(app))) + "\n" + beats_at(app)


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
def test_the_guides_figures_stand_on_the_page(open_page: OpenPage, case: LessonCase, golden: Golden) -> None:
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
        counts = {"waste": waste(state), "usage": usage_of(state), "longest_run": longest_free_run(state)}
        for key, _name, text in frame["figures"]:
            if key.split(".")[0] in counts:
                assert re.sub(r"[ ,%]", "", text) == tell(f"{{{key}:.0f}}", counts), key


@each_lesson
def test_templates_hold_no_number_and_the_page_tells_them_from_the_fold(
    open_page: OpenPage, case: LessonCase
) -> None:
    picture, golden = case.picture, case.goldens[0]
    templates = picture.telling.beats
    assert templates
    assert [t for t in templates if re.search(r"\d", words_of_template(t)) and "Row 0" not in t] == []
    told = [tell(template, picture.facts(golden.value)) for template in templates]
    text = plain_text(open_lesson(open_page, case, **golden.query))
    assert [sentence for sentence in told if sentence.replace("**", "") not in text] == []


@each_lesson
def test_words_of_the_page_itself_hold_no_number_of_the_scene(case: LessonCase) -> None:
    """What a page says of its own is words; numbers reach it through facts."""
    allowed = "Try 1 and 64 above|20 to 26 %|section 7.1|Counting starts at 0"
    words = [re.sub(allowed, "", words_of_template(template)) for template in templates_of(case.page.file)]
    assert [sentence for sentence in words if re.search(r"\d", sentence)] == []


def templates_of(file: str) -> list[str]:
    """The words that a page hands to `beats`."""
    calls = [node for node in ast.walk(ast.parse((ROOT / file).read_text("utf-8"))) if isinstance(node, ast.Call)]
    beats = [call for call in calls if isinstance(call.func, ast.Attribute) and call.func.attr == "beats"]
    words = [arg.value for call in beats for arg in call.args if isinstance(arg, ast.Constant)]
    return [word for word in words if isinstance(word, str)]


BAD_VALUES = [("-1", "low"), ("1e9", "high"), ("abc", "default"), ("NaN", "default")]


@each_lesson
@pytest.mark.parametrize(("raw", "becomes"), BAD_VALUES)
def test_a_bad_position_in_the_address_is_brought_within_range_and_said_so(
    open_page: OpenPage, case: LessonCase, raw: str, becomes: str
) -> None:
    values = case.goldens[0].scene().values
    expected = {"low": values[0], "high": values[-1], "default": case.goldens[0].value}[becomes]
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
def test_the_seed_in_the_address_gives_the_question_again(open_page: OpenPage, case: LessonCase) -> None:
    asked = question(case.lesson, 7)
    app = open_lesson(open_page, case, seed="7")
    assert prompt(app) == asked.prompt.replace("\n", " ")
    [radio] = app.radio
    assert radio.options == [choice.text for choice in asked.choices]


@each_lesson
def test_each_choice_says_why_and_nothing_is_said_before(open_page: OpenPage, case: LessonCase) -> None:
    asked = question(case.lesson, 0)
    app = open_lesson(open_page, case)
    assert verdict(app) == ("none", "")
    for index, choice in enumerate(asked.choices):
        app.radio[0].set_value(index).run()
        mark = "right" if choice.is_right else "wrong"
        assert verdict(app) == (mark, f"{'Right.' if choice.is_right else 'Not so.'} {choice.why}")


@each_lesson
def test_another_question_is_the_next_seed_and_starts_unanswered(open_page: OpenPage, case: LessonCase) -> None:
    app = open_lesson(open_page, case)
    app.radio[0].set_value(0).run()
    app.button(key=f"another_{case.lesson}").click().run()
    assert prompt(app) == question(case.lesson, 1).prompt.replace("\n", " ")
    assert address(app)["seed"] == "1"
    assert verdict(app) == ("none", "")


# ---- the reader's own requests ------------------------------------------------------------------------


def test_a_reader_adds_finishes_and_takes_back_requests(open_page: OpenPage) -> None:
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


def test_each_action_is_told_in_a_sentence_in_both_layouts() -> None:
    both = both_layouts("A5 B9 C30 -C", "buddy", 2)
    assert [frame["say"] for frame in both.in_runs.payload["frames"]] == [
        ["Memory is empty."],
        ["A asks for 5 slots in a row and gets 8."],
        ["B asks for 9 slots in a row and gets 16."],
        ["C asks for 30 slots and is refused: 8 slots free, longest run 8, need 32."],
        ["C ends; it held nothing."],
    ]
    assert [frame["say"] for frame in both.on_pages.payload["frames"]][1:] == [
        ["A asks for 5 slots and takes 3 blocks."],
        ["B asks for 9 slots and takes 5 blocks."],
        ["C asks for 30 slots and is refused: it needs 15 blocks, 8 free."],
        ["C ends; it held nothing."],
    ]


def test_actions_that_cannot_be_replayed_are_replaced_and_the_reason_said(open_page: OpenPage) -> None:
    app = open_page("pages/waste_between.py", do="<b>A0")
    assert figures_at(app)["longest_run"] == "10"
    assert any("this one is '<b>A0'" in sentence for sentence in sentences(app))


def test_a_readers_own_words_fill_the_blocks_as_they_are(open_page: OpenPage) -> None:
    app = open_page("pages/growth.py", words="my own", text="<b>$5</b> :red[x] **y** `z`", block_size="2", tokens="4")
    assert ("<b>$5</b> :red[x]" in {row[-1] for row in rows(app)}) and "**y** `z`" in {row[-1] for row in rows(app)}


def test_a_shorter_reservation_brings_the_tokens_within_it(open_page: OpenPage) -> None:
    app = open_page("pages/reserved_space.py", reserved="16", tokens="12")
    app.number_input(key="reservation_reserved").set_value(5).run()
    assert figures_at(app)["waste.token_states"] == "5"
    assert "Tokens is a whole number from 0 to 5: '12' became 5." in sentences(app)


def test_the_row_of_the_running_model_counts_the_numbers_its_engine_keeps() -> None:
    """Keys and values may be kept in another number type than the model computes in."""
    weights = load_model("tiny-random")
    config = EngineConfig(model="tiny-random", kv_dtype="bfloat16")
    info = Engine(config, load_parts(config, weights)).trace.info
    facts, num_bytes = running_model(weights, info)
    assert (weights.dtype, num_bytes) == ("float32", 2)
    assert facts.kv_bytes_per_token(num_bytes) == info["kv_bytes_per_token"]
