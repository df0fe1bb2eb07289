"""The page "The paper, reproduced": every figure is found by its number, with the paper's words and ours beside it."""

from __future__ import annotations

import re

import pytest
from streamlit.testing.v1 import AppTest

from course.pages import PAPER
from course.paper.record import Measured
from course.paper.records import RECORDS
from course.paper.results import Results
from tests.app.conftest import OpenPage, until_loaded
from tests.helpers.app_html import all_html


def verdicts(app: AppTest) -> dict[str, str]:
    """By key of the row."""
    return dict(re.findall(r'data-row="(\w+)" data-verdict="([a-z ]+)"', all_html(app)))


def store(monkeypatch: pytest.MonkeyPatch, **rows: Measured) -> None:
    """What the page finds in the file."""
    results = Results({"date": "2026-01-02", "processor": "a processor"}, None, rows)
    monkeypatch.setattr(Results, "stored", classmethod(lambda _cls: results))


def test_every_row_says_whether_it_holds_and_one_without_a_result_says_so(
    open_page: OpenPage, monkeypatch: pytest.MonkeyPatch
) -> None:
    store(
        monkeypatch,
        table1=Measured({"13B": [15.7], "66B": [9.6], "175B": [60.1], "requests": [7.0], "left_over": [8.9]}),
    )
    app = open_page(PAPER.file)
    assert not app.exception
    assert verdicts(app) == {record.key: "partly" if record.key == "table1" else "not run" for record in RECORDS}
    assert "Stored results: 2026-01-02, a processor." in "\n".join(text.value for text in app.markdown)
    html = all_html(app)
    assert "<td>9.7</td>" in html and "<td>9.6</td>" in html
    assert any("21 GB hold 9,557 tokens" in text.value for text in app.markdown)


def test_where_text_and_curves_disagree_both_are_told(open_page: OpenPage, monkeypatch: pytest.MonkeyPatch) -> None:
    store(monkeypatch)
    app = open_page(PAPER.file, figure="fig17")
    assert any("The text says 2 times all three Orcas. The curves" in text.value for text in app.markdown)
    assert app.code[0].value == "python -m benchmarks.paper --only fig17"


def test_a_row_run_here_takes_the_place_of_the_stored_one(open_page: OpenPage, monkeypatch: pytest.MonkeyPatch) -> None:
    store(monkeypatch)
    app = open_page(PAPER.file, figure="fig3")
    assert "<td>2038</td>\n      <td>T</td>\n      <td>-</td>" in all_html(app)
    until_loaded(app.button(key="run_fig3").click().run())
    assert "<td>2038</td>\n      <td>T</td>\n      <td>2038</td>\n      <td>holds</td>" in all_html(app)


def test_a_knob_moves_the_curve(open_page: OpenPage, monkeypatch: pytest.MonkeyPatch) -> None:
    store(monkeypatch)
    monkeypatch.setattr("course.paper.one_trace.NUM_TOKENS", 1_500)
    app = open_page(PAPER.file, mix="Alpaca", rate="100")
    before = latencies(app)
    assert before["Max"] > before["Paged"]
    until_loaded(app.number_input(key="paper_slots").set_value(16_384).run())
    assert latencies(app)["Max"] < before["Max"]


def latencies(app: AppTest) -> dict[str, float]:
    """Steps a token, by memory."""
    rows = re.findall(r"<td>(Max|Pow2|Oracle|Paged)</td>\s*<td>([\d.]+)</td>", all_html(app))
    return {name: float(steps) for name, steps in rows}
