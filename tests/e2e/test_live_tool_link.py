"""A link to a slot, a layer, a head: another browser opens the same tool at the same place, with the same numbers."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import parse_qs, urlparse

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from engine import Engine, SamplingParams
from engine.inspect.kernels_eye import kernels_eye
from engine.inspect.slot_microscope import look_at_slot
from tests.helpers.app_server import AppServer
from tests.helpers.live_page import LivePage
from tests.helpers.map_page import cells_of
from tests.helpers.waiting import until, until_equal
from views.live.config import live_config
from views.live.recipe import Recipe

MICROSCOPE, EYE = "Slot microscope", "Kernel's eye"


@pytest.fixture
def live(page: Page, app_server: AppServer) -> LivePage:
    return LivePage(page, app_server.url).open(prompt="abcdef", block_size=4, num_blocks=16, seed=5)


@pytest.fixture
def elsewhere(browser: Browser) -> Iterator[Page]:
    """A browser that knows nothing of the first one."""
    context = browser.new_context(viewport={"width": 1280, "height": 900}, reduced_motion="reduce")
    yield context.new_page()
    context.close()


@pytest.fixture(scope="module")
def engine() -> Engine:
    """What the page does by hand: one request, three steps."""
    engine = Engine(live_config("tiny-random", 4, 16, True, "recompute"))
    engine.add_request("abcdef", SamplingParams(temperature=0.7, max_tokens=24, seed=5))
    for _ in range(3):
        engine.step()
    return engine


def in_address(page: Page) -> dict[str, str]:
    return {name: values[0] for name, values in parse_qs(urlparse(page.evaluate("location.href")).query).items()}


def link_to(live: LivePage, num_steps: int, **place: str) -> str:
    """The address once it tells this place in a run of so many steps."""

    def tells_it() -> bool:
        told = in_address(live.page)
        is_there = place.items() <= told.items()
        return is_there and "run" in told and Recipe.from_text(told["run"]).num_steps == num_steps

    until(tells_it, what=f"{place} at step {num_steps} in the address")
    return live.page.url


def open_link(page: Page, link: str) -> LivePage:
    page.goto(link)
    other = LivePage(page, "")
    other.expect_figure("step", "3")
    expect(other.button("step")).to_be_enabled(timeout=30_000)
    return other


@pytest.mark.slow
def test_a_link_to_a_slot_opens_the_microscope_there(live: LivePage, elsewhere: Page, engine: Engine) -> None:
    live.add()
    live.step(3)
    live.tool(MICROSCOPE)
    for label, value in (("Slot", 6), ("Layer", 1), ("KV head", 1)):
        live.set_number(label, value)
    live.expect_figure("view.slot", "6")
    link = link_to(live, 3, slot="6", layer="1", kv_head="1")
    caption = "Keys and values of slot 6, layer 1, KV head 1, after step 3"

    other = open_link(elsewhere, link)
    other.expect_figure("view.slot", "6")
    rows = other.unfold_table(caption)
    view = look_at_slot(engine, 6, 1, 1)
    until_equal(lambda: numbers(rows, 1), pytest.approx(view.key, abs=1e-6))
    until_equal(lambda: numbers(rows, 2), pytest.approx(view.value, abs=1e-6))
    until_equal(lambda: place_in(elsewhere), {"slot": "6", "layer": "1", "kv_head": "1"})

    live.tool("Block tables")
    until(lambda: place_in(live.page) == {}, what="an address without a slot")


@pytest.mark.slow
def test_a_link_to_a_head_opens_the_kernel_view_at_the_same_block(
    live: LivePage, elsewhere: Page, engine: Engine
) -> None:
    live.add()
    live.step(3)
    live.tool(EYE)
    for label, value in (("Query token", 5), ("Layer", 1), ("Head", 2)):
        live.set_number(label, value)
    live.move_slider("beat", 1)
    expect(live.page.locator("[data-visited-block]")).to_have_attribute("data-visited-block", "1")
    link = link_to(live, 3, sequence="A", token="5", layer="1", head="2", beat="2")

    other = open_link(elsewhere, link)
    expect(elsewhere.locator("[data-visited-block]")).to_have_attribute("data-visited-block", "1")
    visit = kernels_eye(engine, "A", 5, 1, 2).visits[1]
    other.expect_figure("visit.weight", f"{visit.weight:.4f}")
    place = {"token": "5", "layer": "1", "head": "2", "beat": "2", "sequence": "A"}
    until_equal(lambda: place_in(elsewhere), place)


@pytest.mark.slow
def test_a_location_that_does_not_exist_is_corrected_in_the_url_with_a_note(live: LivePage) -> None:
    live.open(block_size=4, num_blocks=16, tool=MICROSCOPE, slot=64, layer=9, kv_head=0)
    live.expect_figure("view.slot", "63")
    for sentence in (
        "Slot must be a whole number from 0 to 63: '64' was changed to 63.",
        "Layer must be a whole number from 0 to 1: '9' was changed to 1.",
    ):
        expect(live.page.get_by_text(sentence)).to_be_visible()
    until_equal(lambda: place_in(live.page), {"slot": "63", "layer": "1", "kv_head": "0"})


def numbers(rows: Locator, column: int) -> list[float]:
    return [float(cells[column]) for cells in cells_of(rows, "td")]


def place_in(page: Page) -> dict[str, str]:
    names = ("slot", "layer", "kv_head", "sequence", "token", "head", "beat")
    return {name: value for name, value in in_address(page).items() if name in names}
