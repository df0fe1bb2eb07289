"""The experiments without a browser: what the address may say, what a failure says, what is run and what is kept."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from typing import Any

import pytest

import course.equation.experiment
import course.race.experiment
from course.equation.experiment import EquationReport
from course.equation.lesson import LESSON as EQUATION
from course.pages import EXPERIMENTS
from course.preemption.lesson import LESSON as PREEMPTION
from course.race.lesson import LESSON as RACE
from course.sabotage.lesson import LESSON as SABOTAGE
from course.shuffle.lesson import LESSON as SHUFFLE
from course.spread import Spread
from course.why_not_shared import prefill_speed
from course.why_not_shared.experiment import why_not_shared
from course.why_not_shared.lesson import LESSON as WHY_NOT_SHARED
from course.why_not_shared.prefill_speed import PrefillSpeed
from engine import EngineConfig
from tests.app.conftest import OpenPage, until_loaded
from tests.helpers.app_html import all_html, figure, sentences
from tests.helpers.models import loaded
from views.lab import why_not_shared as this
from views.lab.background import INTERNAL_ERROR

HOSTILE = "<img src=x onerror=alert(1)>\t**b** $5 :red[x] 日本 مرحبا 👩‍👩‍👧"


@pytest.mark.parametrize("page", EXPERIMENTS, ids=lambda page: page.title)
def test_an_experiment_shows_a_result_as_soon_as_it_opens(open_page: OpenPage, page: Any) -> None:
    app = open_page(page.file, num_blocks="40")
    assert not app.exception
    assert app.title[0].value == page.title
    assert sentences(app) == []
    assert app.get("bidi_component") or "data-blocks" in all_html(app)


@pytest.mark.parametrize(
    ("page", "key", "raw", "value", "sentence"),
    [
        (EQUATION, "block_size", "0", 1, "Block size must be a whole number from 1 to 32: '0' was changed to 1."),
        (
            EQUATION,
            "reserved",
            "1e9",
            256,
            "Slots reserved for each must be a whole number from 32 to 256: '1e9' was changed to 256.",
        ),
        (SHUFFLE, "seed", "-1", 0, "Seed of the move must be a whole number from 0 to 9999: '-1' was changed to 0."),
        (SHUFFLE, "after", "NaN", 6, "Move after step: 'NaN' in the address is not a number, so it was set to 6."),
        (SABOTAGE, "block_size", "abc", 4, "Block size: 'abc' in the address is not a number, so it was set to 4."),
        (RACE, "requests", "61", 60, "Requests must be a whole number from 1 to 60: '61' was changed to 60."),
        (RACE, "rate", "2.4", 2, "Requests in 10 steps must be a whole number from 1 to 50: '2.4' was changed to 2."),
        (
            WHY_NOT_SHARED,
            "block_size",
            "99",
            16,
            "Block size must be a whole number from 1 to 16: '99' was changed to 16.",
        ),
        (
            PREEMPTION,
            "max_tokens",
            "inf",
            24,
            "New tokens each: 'inf' in the address is not a number, so it was set to 24.",
        ),
    ],
)
@pytest.mark.first_case
def test_bad_numbers_in_the_url_are_corrected_with_a_note(
    open_page: OpenPage, page: Any, key: str, raw: str, value: int, sentence: str
) -> None:
    app = open_page(page.file, **{key: raw})
    assert not app.exception
    assert app.number_input(key=f"{page.url_path}_{key}").value == value
    assert sentences(app).count(sentence) == 1


@pytest.mark.parametrize(
    ("page", "query", "sentence"),
    [
        (SABOTAGE, {"deed": "everything"},
         "Break this: 'everything' in the address is not one of the choices, so it was set to swap."),
        (SHUFFLE, {"move": "<b>"},
         "What moves: '<b>' in the address is not one of the choices, so it was set to untouched."),
        (EQUATION, {"model": "gpt-5"},
         "Model: 'gpt-5' in the address is not one of the choices, so it was set to tiny-random."),
        (RACE, {"workload": "typed"},
         "Arrivals: 'typed' in the address is not one of the choices, so it was set to like Alpaca, a quarter as "
         "long."),
        (WHY_NOT_SHARED, {"first": "x" * 20_400},
         "The first prompt: the text had 20400 characters; the limit is 20000, so the rest was cut off."),
    ],
)  # fmt: skip
@pytest.mark.first_case
def test_other_bad_values_are_corrected_with_a_note(
    open_page: OpenPage, page: Any, query: dict[str, str], sentence: str
) -> None:
    app = open_page(page.file, **query)
    assert not app.exception
    assert sentences(app).count(sentence) == 1


@pytest.mark.parametrize(("page", "key", "limit"), [(SABOTAGE, "prompt", 300), (WHY_NOT_SHARED, "second", 20_000)])
def test_a_paste_over_the_limit_is_truncated_with_a_note(open_page: OpenPage, page: Any, key: str, limit: int) -> None:
    app = open_page(page.file)
    box = f"{page.url_path}_{key}"
    app.text_area(key=box).set_value("y" * (limit + 7)).run()
    assert app.text_area(key=box).value == "y" * limit
    assert f"{limit:,} of {limit:,} characters" in all_html(app)
    [said] = [sentence for sentence in sentences(app) if "cut off" in sentence]
    assert said.endswith(f": the text had {limit + 7} characters; the limit is {limit}, so the rest was cut off.")
    assert len("".join(app.query_params.get(key, ""))) == (limit if limit < 2_000 else 0), "no link is that long"


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
        (WHY_NOT_SHARED, {"second": ""}, "A prompt has 1 to 20000 characters."),
        (WHY_NOT_SHARED, {"first_as": "chat message"}, "This model has no chat template; give it plain text to "
         "continue."),
        (PREEMPTION, {"prompts": "abcd", "num_blocks": "2"}, "It may need 7 blocks of 4; the pool has 2. Ask for fewer "
         "tokens or samples, or make the pool larger."),
    ],
)  # fmt: skip
def test_invalid_inputs_are_refused_in_one_sentence(
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


def test_the_page_shows_elapsed_time_and_then_the_result(open_page: OpenPage, monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_results_are_cached_by_their_inputs(open_page: OpenPage, monkeypatch: pytest.MonkeyPatch) -> None:
    runs = count_runs(monkeypatch)
    app = open_page(EQUATION.file)
    for tokens in (5, 8, 5):
        until_loaded(app.number_input(key="equation_max_tokens").set_value(tokens).run())
    assert runs == [8, 5]
    assert figure(app, "tokens") == "all equal"


def count_runs(monkeypatch: pytest.MonkeyPatch, before: Callable[[], object] = lambda: None) -> list[int]:
    """The `max_tokens` of each time that the experiment really runs."""
    really, runs = course.equation.experiment.equation, []

    def counted(model: Any, config: EngineConfig, prompts: Any, max_tokens: int) -> EquationReport:
        before()
        runs.append(max_tokens)
        return really(model, config, prompts, max_tokens)

    monkeypatch.setattr(course.equation.experiment, "equation", counted)
    return runs


def test_an_exception_in_an_experiment_is_shown_as_one_sentence(
    open_page: OpenPage, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_args: object, **_more: object) -> None:
        raise RuntimeError("deep inside")

    monkeypatch.setattr(course.race.experiment, "race", broken)
    app = open_page(RACE.file)
    assert not app.exception
    assert sentences(app) == [INTERNAL_ERROR]
    assert "deep inside" not in all_html(app)


def test_a_button_applies_an_edit(open_page: OpenPage) -> None:
    app = open_page(WHY_NOT_SHARED.file, first="abcdefgh!", second="abcdxfgh!")
    answer = why_not_shared(loaded("tiny-random").tokenizer, 4, "abcdefgh!", "abcdxfgh!")
    assert answer.edit is not None
    assert (figure(app, "answer.num_shared_blocks"), figure(app, "first_difference")) == ("1", "4")
    until_loaded(app.button(key="make_edit").click().run())
    assert app.text_area(key="why_not_shared_second").value == answer.edit.text == "abcdefgh!"
    assert figure(app, "answer.num_shared_blocks") == "2"


@pytest.mark.parametrize(
    ("long", "says"),
    [
        (
            (138.0, 144.4, 150.8),
            "Time to first token saved: about 4 ms</strong> (4 ms to 4 ms in 3 runs). This machine computes 952 tokens",
        ),
        ((11.0, 9.0, 150.8), "No time is shown: with tiny-random in float32"),
    ],
)
def test_the_time_saved_is_shown_when_it_is_measurable(
    open_page: OpenPage, monkeypatch: pytest.MonkeyPatch, long: tuple[float, ...], says: str
) -> None:
    speed = PrefillSpeed(Spread((10.0, 10.0, 10.0)), Spread(long), 16, 144)
    monkeypatch.setattr(prefill_speed, "prefill_speed", lambda *_args: speed)
    this.speed_of.cache_clear()  # type: ignore[attr-defined]
    app = open_page(WHY_NOT_SHARED.file, first="abcdefgh!", second="abcdxfgh!")
    this.speed_of.cache_clear()  # type: ignore[attr-defined]
    assert figure(app, "answer.num_shared_tokens") == "4 of 9"
    assert says in all_html(app)


def test_a_reply_that_ends_before_the_move_is_reported(open_page: OpenPage) -> None:
    app = open_page(SHUFFLE.file, prompt="abc", num_blocks="2", max_tokens="4")
    assert (
        "The reply ended in step 4, but the move is set after step 6. Move earlier, or ask for more tokens."
        in sentences(app)
    )


def test_a_move_is_kept_in_the_url(open_page: OpenPage) -> None:
    app = open_page(SHUFFLE.file)
    assert re.findall(r'data-reply="(\w+)"', all_html(app)) == ["untouched"], "nothing has moved when it opens"
    until_loaded(app.button(key="move_memory_only").click().run())
    assert 'data-reply="memory_only"' in all_html(app)
    until_loaded(app.button(key="move_with_tables").click().run())
    assert app.query_params["move"] == "with_tables"
    assert 'data-reply="with_tables"' in all_html(app) and 'data-reply="memory_only"' not in all_html(app)
