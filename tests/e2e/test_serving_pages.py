"""The pages for people who run servers, in a browser: a real figure, and picture and control on one screen."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from tests.helpers.app_server import AppServer
from tests.helpers.in_view import SIZES, scrolled
from tests.helpers.waiting import until_at_rest

PAGES = [
    ("decode_log", ".pv-bar", "textarea", "tokens", "23,648"),
    ("capacity", ".pv-bar", "[role=combobox]", "tokens", "442,704"),
    ("traffic", "[data-testid=stPlotlyChart]", "textarea", "requests", "32"),
]


@pytest.mark.parametrize(("address", "picture", "control", "figure", "text"), PAGES, ids=[page[0] for page in PAGES])
@pytest.mark.every_case
def test_picture_and_control_are_in_view_on_a_projector(
    page: Page, app_server: AppServer, address: str, picture: str, control: str, figure: str, text: str
) -> None:
    width, height = SIZES["projector"]
    page.set_viewport_size({"width": width, "height": height})
    page.goto(f"{app_server.url}/{address}")
    expect(page.locator(f"[data-figure={figure}]")).to_have_text(text)
    until_at_rest(page)
    expect(page.locator(f".st-key-lesson_picture {picture}").first).to_be_in_viewport(ratio=1)
    expect(page.locator(f".st-key-lesson_controls {control}").first).to_be_in_viewport(ratio=1)
    assert scrolled(page) == 0


def test_a_pasted_log_is_decoded(page: Page, app_server: AppServer) -> None:
    page.goto(f"{app_server.url}/decode_log")
    box = page.get_by_role("textbox", name="Log or metrics")
    box.fill("<b>x</b> GPU KV cache size: 42,656 tokens\nMaximum concurrency for 32,768 tokens per request: 1.30x")
    box.press("Control+Enter")
    expect(page.locator("[data-figure=full_requests]")).to_have_text("1.30")
    expect(page.locator("[data-figure=tokens]")).to_have_text("42,656")
    expect(page.locator(".pv-log code").first).to_have_text("<b>x</b> GPU KV cache size: 42,656 tokens")
