"""The paper's page in a browser: find a figure by its number, run it here, turn a knob."""

from __future__ import annotations

from playwright.sync_api import Page, expect

from course.pages import PAPER
from tests.helpers.app_server import AppServer
from tests.helpers.experiment_page import ExperimentPage


def test_a_figure_is_found_by_its_number_and_run_here(page: Page, app_server: AppServer) -> None:
    lab = ExperimentPage(page, app_server.url, PAPER).open(figure="fig3", mix="Alpaca", rate=100)
    expect(page.locator("[data-row=fig3] th")).to_have_text("Fig. 3")
    lab.press("Run here, smaller")
    table = page.get_by_role("region", name="The paper's numbers and ours")
    expect(table.locator("tr", has_text="A: slots never used").locator("td")).to_have_text(
        ["A: slots never used", "2038", "T", "2038", "holds"]
    )
    lab.type("Slots in the pool", "16384")
    expect(page.get_by_role("region", name="Latency over the length of the reply").locator("tbody tr")).to_have_count(4)
