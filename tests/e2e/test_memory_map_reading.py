"""The memory map read: its text, its look for everyone, its motion, and what can be taken away from it."""

from __future__ import annotations

import json
import re
import struct
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.helpers.accessibility import violations_of
from tests.helpers.app_server import ROOT, AppServer
from tests.helpers.map_page import grab_left_end, label, open_map, table_rows
from tests.helpers.map_traces import HOSTILE_WORDS, SCENES, fox
from tests.helpers.waiting import until, until_equal
from views.browser.text_safe import visible_piece
from views.memory_map.frames import frames_payload
from views.memory_map.narration import headline, sentences

APPS = ROOT / "tests" / "e2e" / "apps"
SVG = "{http://www.w3.org/2000/svg}"


# ---- reading ------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_live_region_announces_the_frame_but_not_during_a_drag(page: Page, maps: AppServer) -> None:
    the_map = open_map(page, maps, "scene=fox&position=4")
    said = the_map.get_by_role("status")
    expect(said).to_have_text(headline(fox().events_of(4)))
    expect(said).to_have_attribute("aria-live", "polite")
    box = the_map.locator("input.range").bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + 10, box["y"] + box["height"] / 2)
    page.mouse.down()
    expect(said).to_have_attribute("aria-live", "off")
    page.mouse.up()
    expect(said).to_have_attribute("aria-live", "polite")


@pytest.mark.slow
def test_all_events_of_a_step_are_one_click_away(page: Page, maps: AppServer) -> None:
    the_map = open_map(page, maps, "scene=fox&position=4")
    everything = sentences(fox().events_of(4))
    the_map.get_by_text(f"{len(everything)} events").click()
    expect(the_map.locator(".log li:visible")).to_have_text(everything)
    page.keyboard.press("Escape")
    expect(the_map.locator(".log li:visible")).to_have_count(0)


@pytest.mark.slow
def test_hostile_text_is_shown_verbatim(page: Page, maps: AppServer) -> None:
    the_map = open_map(page, maps, "scene=hostile")
    the_map.get_by_text("The same as text and tables").click()
    words = list(map(visible_piece, HOSTILE_WORDS[:-1]))
    until_equal(lambda: [word for word in words if word in slots_in_words(the_map)], words)
    expect(page).to_have_title("maps")
    expect(the_map.locator("img, script, svg svg")).to_have_count(0)


def slots_in_words(the_map: Locator) -> str:
    return " ".join(row[4] for row in table_rows(the_map, "Physical blocks"))


@pytest.mark.slow
def test_whitespace_tokens_are_visible_and_distinct(page: Page, maps: AppServer) -> None:
    """tokenizers' whitespace tokens: visible marks, with the token's id."""
    the_map = open_map(page, maps, "scene=blanks&position=5")
    until_equal(the_map.locator(".tok").all_text_contents, ["Blanks", "··", "a", "↵↵↵", "⇥", "b"])
    state = SCENES["blanks"]().at(5)
    for position, mark in ((1, "··"), (3, "↵↵↵"), (4, "⇥")):
        the_map.locator(f".tok[data-pos='{position}']").hover()
        token_id = state.sequences["A"].token_ids[position]
        expect(the_map.locator(".readout")).to_contain_text(f"token {position} of A: “{mark}” (id {token_id})")


@pytest.mark.parametrize("width", [375, 1024])
def test_owner_labels_never_cover_the_block_id(page: Page, maps: AppServer, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 768})
    trace = SCENES["beams"]()
    the_map = open_map(page, maps, f"scene=beams&position={trace.num_steps - 1}")
    shared = [block for block in trace.at(trace.num_steps - 1).blocks if block.ref_cnt > 1]
    assert shared
    expect(the_map.locator(".blk.shared")).to_have_count(len(shared))
    until_equal(lambda: [gap for gap in the_map.locator(".blk.shared").evaluate_all(GAP_BEFORE_CHIPS) if gap < 0], [])


GAP_BEFORE_CHIPS = """blocks => blocks.map(blk => {
    const chips = [...blk.querySelectorAll('.chip')].map(chip => chip.getBoundingClientRect());
    const left = Math.min(...chips.filter(box => box.width).map(box => box.left));
    return left - blk.querySelector('.name').getBoundingClientRect().right;
})"""
GAP_BEFORE_STATE = """blocks => blocks.map(blk => blk.querySelector('.ref').getBoundingClientRect().left
    - blk.querySelector('.name').getBoundingClientRect().right)"""


@pytest.mark.parametrize("width", [1024, 1280])
def test_the_status_of_a_block_never_covers_its_id(page: Page, maps: AppServer, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 900})
    the_map = open_map(page, maps, "scene=crowded")
    with_state = the_map.locator(".blk:has(.ref:not(:empty))")
    expect(with_state).not_to_have_count(0)
    until_equal(lambda: [gap for gap in with_state.evaluate_all(GAP_BEFORE_STATE) if gap < 0], [])
    trace = SCENES["crowded"]()
    cached = sum(block.status == "cached" for block in trace.at(trace.num_steps).blocks)
    expect(the_map.locator(".blk.cached")).to_have_count(cached)
    assert cached
    marks = the_map.locator(".blk.cached .ref")
    until(lambda: set(marks.all_text_contents()) <= {"cached", "#"}, what="a word or a mark in each cached block")
    expect(marks).to_have_count(cached)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("query", ["scene=busy&position=12&second=reservation", "scene=fox&position=7"])
def test_no_accessibility_violation(browser: Browser, maps: AppServer, scheme: str, query: str) -> None:
    context = browser.new_context(color_scheme=scheme, reduced_motion="reduce")  # type: ignore[arg-type]
    page = context.new_page()
    the_map = open_map(page, maps, query)
    the_map.get_by_text("The same as text and tables").click()
    until_equal(lambda: [v for v in violations_of(page) if v["id"] not in PAGE_RULES], [])
    context.close()


PAGE_RULES = {"landmark-one-main", "page-has-heading-one", "region", "landmark-banner-is-top-level"}
"""Rules about the page around the map, which a page of maps alone does not keep."""


@pytest.mark.parametrize("scene", ["fox", "busy", "gaps", "two_answers", "hostile"])
def test_the_map_fits_a_phone(browser: Browser, maps: AppServer, scene: str) -> None:
    """At 375 pixels no word of the picture leaves it, and the page does not scroll sideways."""
    context = browser.new_context(viewport={"width": 375, "height": 812}, reduced_motion="reduce")
    page = context.new_page()
    the_map = open_map(page, maps, f"scene={scene}&position=3")
    until_equal(lambda: the_map.locator("svg.picture").evaluate(STICKS_OUT), [])
    until(lambda: page.evaluate("document.documentElement.scrollWidth") <= 375, what="a page of 375 pixels")
    context.close()


STICKS_OUT = """svg => [...svg.querySelectorAll('text')]
    .filter(text => text.textContent && text.getClientRects().length)
    .filter(text => text.getBoundingClientRect().right > svg.getBoundingClientRect().right + 1)
    .map(text => text.textContent)"""


# ---- motion -------------------------------------------------------------------------------------------

STEP = """map => {
    const root = map.getRootNode();
    const step = () => root.querySelector('button[aria-label^="Step forward"]').click();
    const moving = () => root.getAnimations().filter(move => !(move instanceof CSSTransition));
    const told = move => [move.effect.target.classList[0], move.effect.getTiming().duration];
    step();
    const before = moving();
    const first = before.map(told);
    step();
    return [first.sort(), before.map(move => move.playState)];
}"""
COUNT_MOVES = """
    window.moves = 0;
    const animate = Element.prototype.animate;
    Element.prototype.animate = function (...how) {
        window.moves += this.closest(".stage") ? 1 : 0;
        return animate.apply(this, how);
    };
"""


@pytest.mark.parametrize(
    ("motion", "moves"),
    [
        ("no-preference", [["ghost", 300], ["piece", 300], ["piece", 300], ["slot", 300], ["slot", 300]]),
        ("reduce", []),
    ],
)
def test_a_copy_on_write_animates_once_and_the_next_frame_ends_it(
    browser: Browser, maps: AppServer, motion: str, moves: list[list[object]]
) -> None:
    """A block splits and two tokens go into their slots: 300 ms, or nothing where motion is unwanted."""
    context = browser.new_context(reduced_motion=motion)  # type: ignore[arg-type]
    page = context.new_page()
    the_map = open_map(page, maps, "scene=two_answers&position=1")
    shown, states = the_map.locator(".mm").evaluate(STEP)
    assert shown == moves
    assert states == ["idle"] * len(moves)
    expect(label(the_map)).to_have_text("Step 3")
    expect(the_map.locator(".ghost")).to_have_count(0)
    context.close()


def test_nothing_animates_during_a_drag(browser: Browser, maps: AppServer) -> None:
    context = browser.new_context(reduced_motion="no-preference")
    page = context.new_page()
    page.add_init_script(COUNT_MOVES)
    the_map = open_map(page, maps, "scene=two_answers&position=0")
    y = grab_left_end(the_map.locator("input.range"))
    box = the_map.locator("input.range").bounding_box()
    assert box is not None
    for frame in (1, 2):
        page.mouse.move(box["x"] + box["width"] * frame / 5, y)
        expect(label(the_map)).to_have_text(f"Step {frame}")
    assert page.evaluate("moves") == 0
    page.mouse.up()
    page.keyboard.press("ArrowRight")
    expect(label(the_map)).to_have_text("Step 3")
    until(lambda: page.evaluate("moves") > 0, what="a step by key that moves")
    context.close()


# ---- taking it away -----------------------------------------------------------------------------------


def export(the_map: Locator, item: str) -> bytes:
    the_map.get_by_text("Export", exact=True).click()
    with the_map.page.expect_download() as download:
        the_map.get_by_role("button", name=item).click()
    return Path(download.value.path()).read_bytes()


@pytest.mark.slow
def test_the_exported_svg_is_self_contained(page: Page, maps: AppServer) -> None:
    the_map = open_map(page, maps, "scene=busy&position=12")
    text = export(the_map, "SVG picture").decode()
    root = ET.fromstring(text)
    words = [node.text for node in root.iter(f"{SVG}text")]
    assert "block 13" in words and "helper" in words and "busy: Step 12" in words
    assert "var(" not in text and "color-mix" not in text and "oklab" not in text and 'class="' not in text
    ids = {node.get("id") for node in root.iter()}
    assert set(re.findall(r"url\([^#]*#([\w-]+)", text)) <= ids


@pytest.mark.slow
def test_the_export_menu_closes_when_left(page: Page, maps: AppServer) -> None:
    the_map = open_map(page, maps, "scene=fox&position=7")
    item = the_map.get_by_role("button", name="PNG picture")
    the_map.get_by_text("Export", exact=True).press("Enter")
    expect(item).to_be_visible()
    page.keyboard.press("Escape")
    expect(item).to_be_hidden()
    the_map.get_by_text("Export", exact=True).press("Enter")
    the_map.locator("input.range").focus()
    expect(item).to_be_hidden()


@pytest.mark.slow
def test_the_png_is_twice_the_svgs_size(page: Page, maps: AppServer) -> None:
    the_map = open_map(page, maps, "scene=fox&position=7")
    root = ET.fromstring(export(the_map, "SVG picture"))
    data = export(the_map, "PNG picture")
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    width, height = struct.unpack(">II", data[16:24])
    assert (width, height) == (2 * int(float(root.get("width", 0))), 2 * int(float(root.get("height", 0))))


@pytest.mark.slow
def test_the_exported_frames_equal_the_payload(page: Page, maps: AppServer) -> None:
    the_map = open_map(page, maps, "scene=two_answers")
    exported = json.loads(export(the_map, "Frames as JSON"))
    assert exported == frames_payload(SCENES["two_answers"](), title="two_answers")
