"""The live page as a person uses it: buttons by their names, figures by their keys, tables as rows."""

from __future__ import annotations

import re
import time
from urllib.parse import urlencode

from playwright.sync_api import Locator, Page, expect

MODEL_MILLISECONDS = 180_000
"""Patience for a model to load."""
STEP_MILLISECONDS = 30_000
"""Patience for one step of the model on a busy machine."""


class LivePage:
    def __init__(self, page: Page, base_url: str) -> None:
        self.page = page
        self.base_url = base_url

    def open(self, **settings: object) -> LivePage:
        """Go to the page with these settings in its address, and wait until it can be used."""
        self.page.goto(f"{self.base_url}/live_engine?{urlencode(settings)}")
        expect(self.button("add")).to_be_enabled(timeout=MODEL_MILLISECONDS)
        self.settle()
        return self

    def settle(self) -> None:
        """Wait until the script that a click started has come to its end."""
        self.page.wait_for_timeout(120)
        self.page.wait_for_selector("[data-testid=stApp][data-test-script-state=notRunning]")

    def button(self, key: str) -> Locator:
        return self.page.locator(f".st-key-{key} button")

    def setting(self, label: str) -> Locator:
        """A control by its label."""
        return self.page.get_by_label(label, exact=True)

    def add(self) -> None:
        before = self.requests.count()
        self.button("add").click()
        expect(self.requests).to_have_count(before + 1, timeout=STEP_MILLISECONDS)
        self.settle()

    def step(self, times: int = 1) -> None:
        """One click after another, each after the picture of the last."""
        for _ in range(times):
            step = int(self.figure("step"))
            self.button("step").click()
            self.expect_figure("step", str(step + 1))
            self.settle()

    def tool(self, name: str) -> None:
        """One of the tools to look closer."""
        self.page.locator(".st-key-tool").get_by_text(name, exact=True).click()
        self.settle()

    def set_number(self, label: str, value: int) -> None:
        """Type into the number box whose label begins so."""
        box = self.page.locator("[data-testid=stMain]").get_by_label(re.compile(rf"^{label} \("))
        box.fill(str(value))
        self.page.keyboard.press("Tab")
        self.settle()

    def move_slider(self, key: str, by: int) -> None:
        """By so many presses of an arrow key."""
        self.page.locator(f".st-key-{key} input[type=range]").focus()
        for _ in range(abs(by)):
            self.page.keyboard.press("ArrowRight" if by > 0 else "ArrowLeft")
        self.settle()

    def wait_for_step(self, at_least: int) -> None:
        """A run gets there by itself."""
        deadline = time.monotonic() + STEP_MILLISECONDS / 1000
        while int(self.figure("step")) < at_least:
            assert time.monotonic() < deadline, f"step {at_least} did not come"
            self.page.wait_for_timeout(50)

    def choose_request(self, request_id: str) -> None:
        """Of the pills that name the requests."""
        self.page.locator(".st-key-request").get_by_text(request_id, exact=True).click()
        self.settle()

    @property
    def requests(self) -> Locator:
        return self.page.locator("[data-request]")

    def status(self, request_id: str) -> str | None:
        return self.page.locator(f"[data-request='{request_id}']").get_attribute("data-status")

    def figure(self, key: str) -> str:
        return self.page.locator(f"[data-figure='{key}']").inner_text()

    def expect_figure(self, key: str, value: str) -> None:
        expect(self.page.locator(f"[data-figure='{key}']")).to_have_text(value, timeout=STEP_MILLISECONDS)

    def prompt(self, seq_id: str) -> str:
        return self._text(f"[data-prompt='{seq_id}']")

    def reply(self, seq_id: str) -> str:
        return self._text(f"[data-text='{seq_id}']")

    def table(self, seq_id: str) -> list[list[str]]:
        """The rows of a block table: logical block, physical block, slots, filled, held by."""
        rows = self.page.locator(f"[data-block-table='{seq_id}'] tbody tr").all()
        return [[cell.inner_text() for cell in row.locator("th, td").all()[:5]] for row in rows]

    def table_pieces(self, seq_id: str) -> list[list[str]]:
        """The tokens shown in each row of a block table."""
        rows = self.page.locator(f"[data-block-table='{seq_id}'] tbody tr").all()
        return [row.locator(".pv-piece:not(.empty)").all_text_contents() for row in rows]

    def table_of(self, caption: str) -> list[list[str]]:
        """The rows of the table that says the same as a chart."""
        self.page.get_by_text(f"{caption}: the same as a table").click()
        table = self.page.get_by_role("region", name=caption)
        expect(table).to_be_visible()
        return [row.locator("td").all_inner_texts() for row in table.locator("tbody tr").all()]

    def _text(self, selector: str) -> str:
        content = self.page.locator(selector).text_content()
        assert content is not None
        return content
