"""What a lesson's picture says by itself: the token that the page speaks of, a legend of what is there, and slots that
can be read and pointed at whichever part of the picture was made first."""

from __future__ import annotations

from urllib.parse import urlencode

import pytest
from playwright.sync_api import Locator, Page, expect

from course.block_table.lesson import LESSON as BLOCK_TABLE
from course.block_table.scene import block_table
from course.lesson import CoursePage
from course.reserved_space.lesson import LESSON as RESERVED_SPACE
from course.sharing.lesson import LESSON as SHARING
from course.waste_between.lesson import LESSON as WASTE_BETWEEN
from engine.trace.usage import address_of
from tests.helpers.app_server import AppServer
from tests.helpers.map_page import lit, open_map
from tests.helpers.map_traces import three_answers

PATIENCE = 30_000
LEGEND = "ul.legend li:visible"


def open_picture(page: Page, server: AppServer, lesson: CoursePage, key: str, **query: str) -> Locator:
    page.goto(f"{server.url}/{lesson.url_path}?{urlencode(query)}")
    the_map = page.locator(f".st-key-{key}")
    expect(the_map.locator("svg.picture[viewBox]")).to_be_visible(timeout=PATIENCE)
    return the_map


@pytest.mark.slow
def test_the_token_of_the_arithmetic_is_highlighted_until_another_is_hovered(page: Page, app_server: AppServer) -> None:
    scene = block_table()
    frame = scene.at(scene.values[-1])
    the_map = open_picture(page, app_server, BLOCK_TABLE, "map_block_table", token="5")
    for position in (5, 0):
        address = address_of(frame, "A", position)
        expect(lit(the_map, ".tok")).to_have_text(address.piece)
        expect(lit(the_map, ".row")).to_have_attribute("data-logical", str(address.logical_index))
        expect(lit(the_map, ".blk")).to_have_attribute("data-block", str(address.block_id))
        expect(lit(the_map, ".slot")).to_have_attribute("data-off", str(address.offset))
        page.get_by_label("Token", exact=True).fill("0")
        page.keyboard.press("Enter")
    the_map.locator(".tok[data-pos='6']").hover()
    expect(lit(the_map, ".tok")).to_have_text("field")
    page.mouse.move(0, 0)
    expect(lit(the_map, ".tok")).to_have_text("The")


@pytest.mark.slow
def test_the_legend_explains_what_the_trace_has_and_no_more(page: Page, app_server: AppServer) -> None:
    reserved = open_picture(page, app_server, RESERVED_SPACE, "map_reservation")
    expect(reserved.locator(LEGEND)).to_have_text(["used", "reserved, not used", "free"])
    alone = open_picture(page, app_server, BLOCK_TABLE, "map_block_table")
    expect(alone.locator(LEGEND)).to_have_text(["in use", "empty"])
    shared = open_picture(page, app_server, SHARING, "map_sharing")
    expect(shared.locator(LEGEND)).to_have_text(["in use", "empty", "×2: two block tables point to it (ref_cnt)"])


@pytest.mark.slow
def test_a_later_reservation_covers_no_token_and_can_be_hovered(page: Page, app_server: AppServer) -> None:
    the_map = open_picture(
        page, app_server, WASTE_BETWEEN, "map_fragmentation", do="A5 B9", allocator="buddy", done="1"
    )
    expect(the_map.locator(".bar .label")).to_have_text("1 action")
    the_map.get_by_role("button", name="Last frame (End)").click()
    expect(the_map.locator(".bar .label")).to_have_text("2 actions")
    the_map.locator(".hit[data-off='16']").hover()
    expect(the_map.locator(".readout")).to_contain_text("slot 16: reserved for B, 9 of 16 written")
    order = the_map.locator(".arena > g").evaluate("body => [...body.children].map(layer => layer.firstChild.tagName)")
    assert order == ["rect", "path", "text", "text", "rect"], "runs, lines, words, notes, and what the pointer meets"


@pytest.mark.slow
def test_a_pool_as_the_live_page_opens_with_shows_words_and_every_holder(page: Page, maps: AppServer) -> None:
    """Where holders have no room, a count of one is left out, and then the word before a block's number."""
    page.set_viewport_size({"width": 990, "height": 1200})
    the_map = open_map(page, maps, "scene=three_answers&position=2")
    state = three_answers().at(2)
    shared, private = 0, state.sequences["A#1"].block_table[-1]
    assert (state.blocks[shared].ref_cnt, state.blocks[private].ref_cnt) == (3, 1)
    words = the_map.locator(f".blk[data-block='{shared}'] .piece")
    expect(words).to_have_text(["Once", "upon", "a", "time"])
    for block, name, holders in ((shared, "0", ["+2", "A"]), (private, f"block {private}", ["A1"])):
        drawn = the_map.locator(f".blk[data-block='{block}']")
        expect(drawn.locator(".name")).to_have_text(name)
        expect(drawn.locator(".chip:visible")).to_have_text(holders)


@pytest.mark.slow
def test_a_phone_has_the_slider_its_value_and_the_sizes_in_one_line(page: Page, app_server: AppServer) -> None:
    page.set_viewport_size({"width": 375, "height": 812})
    the_map = open_picture(page, app_server, BLOCK_TABLE, "map_block_table")
    tops = the_map.locator(".bar").evaluate(
        "bar => [...bar.querySelectorAll('.range, .label, .sizer')].map(e => e.getBoundingClientRect())"
        ".map(box => Math.round(box.top + box.height / 2))"
    )
    assert len(tops) == 4
    assert max(tops) - min(tops) <= 2
