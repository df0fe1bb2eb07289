"""The page over a server, as a person uses it."""

from __future__ import annotations

from urllib.parse import urlencode

from playwright.sync_api import Locator, Page, expect

from tests.helpers.waiting import until_at_rest

MILLISECONDS = 30_000


class RemotePage:
    def __init__(self, page: Page, base_url: str) -> None:
        self.page = page
        self.base_url = base_url

    def open(self, **address: object) -> RemotePage:
        self.page.goto(f"{self.base_url}/remote_server?{urlencode(address)}")
        expect(self.button("attach")).to_be_visible(timeout=MILLISECONDS)
        self.settle()
        return self

    def settle(self) -> None:
        until_at_rest(self.page)

    def button(self, key: str) -> Locator:
        return self.page.locator(f".st-key-{key} button")

    def press(self, key: str) -> None:
        self.button(key).click()
        self.settle()

    def expect_figure(self, field: str, value: str) -> None:
        figure = self.page.locator(f"[data-figure='report.{field}']")
        expect(figure).to_have_text(value, timeout=MILLISECONDS)

    @property
    def radix_tree(self) -> Locator:
        return self.page.locator(".st-key-radix_tree .tree")

    def branch(self, words: str) -> Locator:
        """The node of the prefix tree whose own text begins so, with all that is below it."""
        own = self.page.locator(f".words:text-matches('^{words}')")
        return self.radix_tree.locator("details").filter(has=own).last

    @property
    def cards(self) -> Locator:
        return self.page.locator(".st-key-remote_map svg [data-kind=block]")
