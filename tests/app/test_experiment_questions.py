"""Each experiment asks before it shows: the verdict on an answer, another question, and a seed of its own."""

from __future__ import annotations

import re

import pytest
from streamlit.testing.v1 import AppTest

from course.pages import EXPERIMENTS, lesson_by_key
from tests.app.conftest import OpenPage, until_loaded
from tests.helpers.app_html import all_html


def verdict(app: AppTest) -> str:
    [kind] = re.findall(r'data-verdict="(\w+)"', all_html(app))
    return str(kind)


@pytest.mark.parametrize("experiment", [experiment.key for experiment in EXPERIMENTS])
def test_an_experiment_asks_first_and_then_checks_the_prediction(open_page: OpenPage, experiment: str) -> None:
    app = open_page(f"pages/{experiment}.py", question="3", seed="5")
    asked = lesson_by_key(experiment).question(3)
    [radio] = app.radio
    assert list(radio.options) == [choice.text for choice in asked.choices]
    assert verdict(app) == "none"
    right = asked.choices.index(asked.right)
    until_loaded(radio.set_value(right).run())
    assert verdict(app) == "right"
    until_loaded(app.radio[0].set_value((right + 1) % len(asked.choices)).run())
    assert verdict(app) == "wrong"
    until_loaded(app.button(key=f"another_{experiment}").click().run())
    assert verdict(app) == "none"
    assert list(app.radio[0].options) == [choice.text for choice in lesson_by_key(experiment).question(4).choices]
    assert app.query_params["question"] == "4"
    assert not app.exception
    assert [field.value for field in app.number_input if field.label.startswith("Seed")] in ([], [5])
