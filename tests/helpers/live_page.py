"""The live page as a person uses it: buttons by their names, figures by their keys, tables as rows."""

from __future__ import annotations

import re
from urllib.parse import urlencode

from playwright.sync_api import Locator, Page, expect

from tests.helpers.map_page import cells_of
from tests.helpers.waiting import until, until_at_rest, until_equal

MODEL_MILLISECONDS = 300_000
"""Patience for a model to load."""
STEP_MILLISECONDS = 120_000
"""Patience for one step of the model on a busy machine; a server that has just started loads the model first."""


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
        until_at_rest(self.page)

    def button(self, key: str) -> Locator:
        return self.page.locator(f".st-key-{key} button")

    def setting(self, label: str) -> Locator:
        """A control by its label."""
        return self.page.get_by_label(label, exact=True)

    def set(self, label: str, value: object) -> None:
        """Type into a control of the folded settings."""
        control = self.setting(label)
        if not control.is_visible():
            self.page.locator("[data-testid=stExpander]").get_by_text("Settings", exact=True).click()
            expect(control).not_to_have_value("")  # it mounts empty
        control.fill(str(value))
        self.page.keyboard.press("Tab")
        self.settle()

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
        expect(box).not_to_have_value("")  # it mounts empty
        box.fill(str(value))
        self.page.keyboard.press("Tab")
        expect(box).to_have_value(str(value))
        self.settle()

    def move_slider(self, key: str, by: int) -> None:
        """By so many presses of an arrow key."""
        self.page.locator(f".st-key-{key} input[type=range]").focus()
        for _ in range(abs(by)):
            self.page.keyboard.press("ArrowRight" if by > 0 else "ArrowLeft")
        self.settle()

    def wait_for_step(self, at_least: int) -> None:
        """A run gets there by itself."""
        until(lambda: int(self.figure("step")) >= at_least, what=f"step {at_least}")

    def choose_request(self, request_id: str) -> None:
        """Of the pills that name the requests."""
        self.page.locator(".st-key-request").get_by_text(request_id, exact=True).click()
        self.settle()

    @property
    def requests(self) -> Locator:
        return self.page.locator("[data-request]")

    def figure(self, key: str) -> str:
        return self.page.locator(f"[data-figure='{key}']").inner_text()

    def expect_figure(self, key: str, value: str) -> None:
        expect(self.page.locator(f"[data-figure='{key}']")).to_have_text(value, timeout=STEP_MILLISECONDS)

    def expect_status(self, request_id: str, status: str) -> None:
        request = self.page.locator(f"[data-request='{request_id}']")
        expect(request).to_have_attribute("data-status", status, timeout=STEP_MILLISECONDS)

    def expect_prompt(self, seq_id: str, prompt: str) -> None:
        """Character for character."""
        until_equal(lambda: self._text(f"[data-prompt='{seq_id}']"), prompt)

    def prompt(self, seq_id: str) -> str:
        return self._text(f"[data-prompt='{seq_id}']")

    def expect_reply(self, seq_id: str, reply: str) -> None:
        """Character for character."""
        until_equal(lambda: self.reply(seq_id), reply)

    def reply(self, seq_id: str) -> str:
        return self._text(f"[data-text='{seq_id}']")

    def table(self, seq_id: str) -> list[list[str]]:
        """The rows of a block table: logical block, physical block, slots, filled, held by."""
        return [cells[:5] for cells in cells_of(self.page.locator(f"[data-block-table='{seq_id}'] tbody tr"))]

    def expect_table(self, seq_id: str, rows: list[list[str]]) -> None:
        until_equal(lambda: self.table(seq_id), rows)

    def expect_pieces(self, seq_id: str, rows: list[list[str]]) -> None:
        """The tokens shown in each row of a block table."""
        until_equal(lambda: self.table_pieces(seq_id), rows)

    def table_pieces(self, seq_id: str) -> list[list[str]]:
        """The tokens shown in each row of a block table."""
        return cells_of(self.page.locator(f"[data-block-table='{seq_id}'] tbody tr"), ".pv-piece:not(.empty)")

    def unfold_table(self, caption: str) -> Locator:
        """The rows of the table that says the same as a chart."""
        self.page.get_by_text(f"{caption}: the same as a table").click()
        table = self.page.get_by_role("region", name=caption)
        expect(table).to_be_visible()
        return table.locator("tbody tr")

    def _text(self, selector: str) -> str:
        content = self.page.locator(selector).text_content()
        assert content is not None
        return content
