"""The experiments without a browser: what the address may say, what a failure says, what is run and what is kept."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from typing import Any

import pytest

import engine.lab.equation
import engine.lab.race
from engine import EngineConfig
from engine.lab.equation import EquationReport
from engine.lab.why_not_shared import why_not_shared
from tests.app.conftest import OpenPage, until_loaded
from tests.helpers.app_html import all_html, figure, sentences
from tests.helpers.models import loaded
from views.course import EQUATION, LAB, PREEMPTION, RACE, SABOTAGE, SHUFFLE, WHY_NOT_SHARED
from views.experiments.runs import BROKEN

HOSTILE = "<img src=x onerror=alert(1)>\t**b** $5 :red[x] 日本 مرحبا 👩‍👩‍👧"


@pytest.mark.parametrize("page", LAB, ids=lambda page: page.title)
def test_an_experiment_shows_a_result_as_soon_as_it_opens(open_page: OpenPage, page: Any) -> None:
    app = open_page(page.file, num_blocks="40")
    assert not app.exception
    assert app.title[0].value == page.title
    assert sentences(app) == []
    assert app.get("bidi_component") or "data-blocks" in all_html(app)


@pytest.mark.parametrize(
    ("page", "key", "raw", "value", "sentence"),
    [
        (EQUATION, "block_size", "0", 1, "Block size is a whole number from 1 to 32: '0' became 1."),
        (
            EQUATION,
            "reserved",
            "1e9",
            256,
            "Slots reserved for each is a whole number from 32 to 256: '1e9' became 256.",
        ),
        (SHUFFLE, "seed", "-1", 0, "Seed of the move is a whole number from 0 to 9999: '-1' became 0."),
        (SHUFFLE, "after", "NaN", 6, "Move after step: 'NaN' in the address is not a number, so it is 6."),
        (SABOTAGE, "block_size", "abc", 4, "Block size: 'abc' in the address is not a number, so it is 4."),
        (RACE, "requests", "61", 60, "Requests is a whole number from 1 to 60: '61' became 60."),
        (RACE, "rate", "2.4", 2, "Requests in 10 steps is a whole number from 1 to 50: '2.4' became 2."),
        (WHY_NOT_SHARED, "block_size", "99", 16, "Block size is a whole number from 1 to 16: '99' became 16."),
        (PREEMPTION, "max_tokens", "inf", 24, "New tokens each: 'inf' in the address is not a number, so it is 24."),
    ],
)
def test_bad_numbers_in_the_address_are_corrected_and_said_so(
    open_page: OpenPage, page: Any, key: str, raw: str, value: int, sentence: str
) -> None:
    app = open_page(page.file, **{key: raw})
    assert not app.exception
    assert app.number_input(key=f"{page.url_path}_{key}").value == value
    assert sentences(app).count(sentence) == 1


@pytest.mark.parametrize(
    ("page", "query", "sentence"),
    [
        (SABOTAGE, {"deed": "everything"}, "Break this: 'everything' in the address is not known here, so it is swap."),
        (SHUFFLE, {"move": "<b>"}, "What moves: '<b>' in the address is not known here, so it is memory_only."),
        (EQUATION, {"model": "gpt-5"}, "Model: 'gpt-5' in the address is not known here, so it is tiny-random."),
        (RACE, {"workload": "typed"}, "Arrivals: 'typed' in the address is not known here, so it is like Alpaca, a "
         "quarter as long."),
        (WHY_NOT_SHARED, {"first": "x" * 400}, "The first prompt: the address held 400 characters; 300 are kept."),
    ],
)  # fmt: skip
def test_other_bad_values_are_corrected_and_said_so(
    open_page: OpenPage, page: Any, query: dict[str, str], sentence: str
) -> None:
    app = open_page(page.file, **query)
    assert not app.exception
    assert sentences(app).count(sentence) == 1


@pytest.mark.parametrize(
    ("page", "query", "sentence"),
    [
        (EQUATION, {"prompts": " "}, "Type 1 to 4 prompts, one a line; these are 0."),
        (EQUATION, {"prompts": "a\nb\nc\nd\ne"}, "Type 1 to 4 prompts, one a line; these are 5."),
        (EQUATION, {"prompts": "x" * 64, "reserved": "32"}, "The prompt has 64 tokens; with max_model_len 32 it may "
         "have at most 31."),
        (SHUFFLE, {"prompt": ""}, "The prompt is empty: at least 1 token is needed."),
        (SHUFFLE, {"prompt": "abcdefghi", "num_blocks": "2"}, "The prompt has 9 tokens; with max_model_len 8 it may "
         "have at most 7."),
        (SABOTAGE, {"prompt": "x" * 97}, "The prompt needs 1 to 96 tokens here; this one has 97."),
        (SABOTAGE, {"prompt": "abc", "deed": "prefix"}, "This experiment needs a prompt of at least 4 tokens."),
        (RACE, {"workload": "typed in", "lines": "now 1 2"}, "Line 1 must be three whole numbers: step, prompt tokens, "
         "output tokens."),
        (WHY_NOT_SHARED, {"second": ""}, "A prompt has 1 to 2000 characters."),
        (WHY_NOT_SHARED, {"first_as": "chat message"}, "This model has no chat template; give it plain text to "
         "continue."),
        (PREEMPTION, {"prompts": "abcd", "num_blocks": "2"}, "It may need 7 blocks of 4; the pool has 2. Ask for fewer "
         "tokens or samples, or make the pool larger."),
    ],
)  # fmt: skip
def test_what_cannot_be_run_is_refused_in_one_sentence(
    open_page: OpenPage, page: Any, query: dict[str, str], sentence: str
) -> None:
    app = open_page(page.file, **query)
    assert not app.exception
    assert sentences(app) == [sentence]


@pytest.mark.parametrize("page", [EQUATION, SHUFFLE, SABOTAGE, WHY_NOT_SHARED, PREEMPTION], ids=lambda page: page.title)
def test_prompts_never_become_html_or_markdown(open_page: OpenPage, page: Any) -> None:
    names = {EQUATION: "prompts", PREEMPTION: "prompts", WHY_NOT_SHARED: "first"}
    app = open_page(page.file, **{names.get(page, "prompt"): HOSTILE, "num_blocks": "60"})
    assert not app.exception
    assert "<img" not in all_html(app)
    assert not any("onerror" in element.value for element in app.markdown)


def test_the_page_says_how_long_it_has_run_and_shows_the_result_when_it_comes(
    open_page: OpenPage, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate, runs = threading.Event(), count_runs(monkeypatch, before=lambda: gate.wait(30))
    monkeypatch.setattr("tests.app.conftest.until_loaded", lambda app: app)
    app = open_page(EQUATION.file)
    while "engines" not in app.get("progress")[0].proto.text:
        app.run()
    assert re.fullmatch(r"Running the engines: \d+ s so far", app.get("progress")[0].proto.text)
    assert [header.value for header in app.header] == ["What to notice"], "the page reads on meanwhile"
    gate.set()
    until_loaded(app)
    assert figure(app, "tokens") == "all equal"
    assert runs == [8]


def test_a_result_is_kept_for_its_inputs(open_page: OpenPage, monkeypatch: pytest.MonkeyPatch) -> None:
    runs = count_runs(monkeypatch)
    app = open_page(EQUATION.file)
    for tokens in (5, 8, 5):
        until_loaded(app.number_input(key="equation_max_tokens").set_value(tokens).run())
    assert runs == [8, 5]
    assert figure(app, "tokens") == "all equal"


def count_runs(monkeypatch: pytest.MonkeyPatch, before: Callable[[], object] = lambda: None) -> list[int]:
    """The `max_tokens` of each time that the experiment really runs."""
    really, runs = engine.lab.equation.equation, []

    def counted(model: Any, config: EngineConfig, prompts: Any, max_tokens: int) -> EquationReport:
        before()
        runs.append(max_tokens)
        return really(model, config, prompts, max_tokens)

    monkeypatch.setattr(engine.lab.equation, "equation", counted)
    return runs


def test_a_fault_in_an_experiment_is_one_sentence(open_page: OpenPage, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_args: object, **_more: object) -> None:
        raise RuntimeError("deep inside")

    monkeypatch.setattr(engine.lab.race, "race", broken)
    app = open_page(RACE.file)
    assert not app.exception
    assert sentences(app) == [BROKEN]
    assert "deep inside" not in all_html(app)


def test_an_edit_is_made_by_a_button(open_page: OpenPage) -> None:
    app = open_page(WHY_NOT_SHARED.file, first="abcdefgh!", second="abcdxfgh!")
    answer = why_not_shared(loaded("tiny-random").tokenizer, 4, "abcdefgh!", "abcdxfgh!")
    assert answer.edit is not None
    assert (figure(app, "answer.num_shared_blocks"), figure(app, "first_difference")) == ("1", "4")
    until_loaded(app.button(key="make_edit").click().run())
    assert app.text_area(key="why_not_shared_second").value == answer.edit.text == "abcdefgh!"
    assert figure(app, "answer.num_shared_blocks") == "2"


def test_a_reply_that_ends_before_the_move_is_said_so(open_page: OpenPage) -> None:
    app = open_page(SHUFFLE.file, prompt="abc", num_blocks="2", max_tokens="4")
    assert "The reply ended in step 4, and the move comes after step 6. Move earlier, or ask for more." in sentences(
        app
    )


def test_a_move_is_kept_in_the_address(open_page: OpenPage) -> None:
    app = open_page(SHUFFLE.file)
    assert 'data-reply="memory_only"' in all_html(app)
    until_loaded(app.button(key="move_with_tables").click().run())
    assert app.query_params["move"] == "with_tables"
    assert 'data-reply="with_tables"' in all_html(app) and 'data-reply="memory_only"' not in all_html(app)
