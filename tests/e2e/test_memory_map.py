"""The memory map moved and pointed at, as a reader does it: drag, keys, frames that come, links between its parts."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from playwright.sync_api import Page, WebSocket, expect

from engine.trace.usage import usage_of
from tests.helpers.app_server import ROOT, AppServer, running_app
from tests.helpers.map_page import go_to, grab_left_end, label, lit, open_map, picture, same_picture, table_rows
from tests.helpers.map_traces import busy, large
from tests.helpers.waiting import until, until_equal
from views.elements.tables import sequences_frame

APPS = ROOT / "tests" / "e2e" / "apps"
SVG = "{http://www.w3.org/2000/svg}"


# ---- time ---------------------------------------------------------------------------------------------


def test_the_picture_follows_the_drag_and_python_is_told_on_release(page: Page, maps: AppServer) -> None:
    the_map = open_map(page, maps, "scene=fox&position=0")
    expect(page.get_by_text("runs=1 position=0")).to_be_visible()
    y = grab_left_end(the_map.locator("input.range"))
    box = the_map.locator("input.range").bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + box["width"] * 0.5, y, steps=8)
    expect(label(the_map)).to_have_text("Step 4")
    expect(the_map.locator(".blk[data-block='6']")).to_have_class(re.compile("used"))
    expect(the_map.locator(".blk[data-block='8']")).to_have_class(re.compile("free"))
    page.mouse.move(box["x"] + box["width"] * 0.875, y, steps=8)
    expect(label(the_map)).to_have_text("Step 7")
    expect(the_map.locator(".blk[data-block='8']")).to_have_class(re.compile("used"))
    page.wait_for_timeout(400)
    expect(page.get_by_text("runs=1 position=0")).to_be_visible()
    page.mouse.up()
    expect(page.get_by_text("runs=2 position=7 step=7")).to_be_visible()


KEYS = [
    ("ArrowRight", "Step forward (right arrow)", "Step 4"),
    (".", "Step forward (right arrow)", "Step 4"),
    ("ArrowLeft", "Step back (left arrow)", "Step 2"),
    (",", "Step back (left arrow)", "Step 2"),
    ("End", "Last frame (End)", "Step 8"),
    ("Home", "First frame (Home)", "Start"),
]


@pytest.mark.slow
def test_every_key_has_a_button_and_both_do_the_same(page: Page, maps: AppServer) -> None:
    the_map = open_map(page, maps, "scene=fox&position=3")
    for key, name, expected in KEYS:
        go_to(the_map, 3)
        page.keyboard.press(key)
        expect(label(the_map)).to_have_text(expected)
        go_to(the_map, 3)
        the_map.get_by_role("button", name=name).click()
        expect(label(the_map)).to_have_text(expected)


@pytest.mark.slow
def test_space_plays_and_pauses_and_play_starts_over_at_the_end(page: Page, maps: AppServer) -> None:
    the_map = open_map(page, maps, "scene=fox&position=8")
    slider, speed = the_map.locator("input.range"), the_map.get_by_label("Speed, frames a second")
    speed.select_option("0.5")
    slider.press(" ")
    expect(the_map.get_by_role("button", name="Pause (space)")).to_be_visible()
    expect(label(the_map)).to_have_text(re.compile("^(Start|Step [1-4])$"))
    slider.press(" ")
    expect(the_map.get_by_role("button", name="Play (space)")).to_be_visible()
    expect(label(the_map)).not_to_have_text("Step 8")
    speed.select_option("20")
    slider.press(" ")
    expect(label(the_map)).to_have_text("Step 8")
    expect(the_map.get_by_role("button", name="Play (space)")).to_be_visible()


def test_stepping_back_draws_the_same_picture(page: Page, maps: AppServer) -> None:
    the_map = open_map(page, maps, "scene=busy&position=11")
    before = picture(the_map)
    for _ in range(5):
        the_map.get_by_role("button", name="Step forward").click()
    expect(label(the_map)).to_have_text("Step 16")
    until(lambda: not same_picture(picture(the_map), before), what="another picture")
    for _ in range(5):
        the_map.get_by_role("button", name="Step back").click()
    expect(label(the_map)).to_have_text("Step 11")
    until(lambda: same_picture(picture(the_map), before), what="the same picture again")


@pytest.mark.parametrize("frames", [(12, 3, 29, 0, 17)], ids=["in and out of order"])
@pytest.mark.slow
def test_the_data_tables_equal_the_engines_state(page: Page, maps: AppServer, frames: tuple[int, ...]) -> None:
    the_map = open_map(page, maps, "scene=busy")
    the_map.get_by_text("The same as text and tables").click()
    trace = busy()
    for frame in frames:
        go_to(the_map, frame)
        state = trace.at(frame)
        blocks = [[str(block.block_id), block.status, str(block.ref_cnt)] for block in state.blocks]
        until_equal(lambda: [row[:3] for row in table_rows(the_map, "Physical blocks")], blocks)
        columns = ["sequence", "tokens known", "KV written", "block table"]
        sequences = sequences_frame(state)[columns].astype(str).to_numpy().tolist()
        until_equal(lambda: [row[1:5] for row in table_rows(the_map, "Sequences")], sequences)


@pytest.mark.slow
def test_a_long_run_jumps_to_any_frame_and_back(page: Page, maps: AppServer) -> None:
    """124 frames, 1,024 blocks: over several keyframes, in both directions, drawn small."""
    the_map = open_map(page, maps, "scene=large")
    trace = large()
    expect(the_map.locator("svg .slot")).to_have_count(0)
    for frame in (123, 60, 61, 7, 119, 0):
        go_to(the_map, frame)
        usage = usage_of(trace.at(frame))
        counts = f"{usage.num_used_blocks} used, {usage.num_cached_blocks} cached, {usage.num_free_blocks} free"
        expect(the_map.locator("svg .grid .heading").first).to_have_text(f"physical memory: {counts}")


def test_the_url_sets_the_frame_and_a_reload_keeps_it(page: Page, maps: AppServer) -> None:
    the_map = open_map(page, maps, "scene=fox&position=5")
    expect(label(the_map)).to_have_text("Step 5")
    page.reload()
    expect(label(page.locator(".st-key-map"))).to_have_text("Step 5")


@pytest.mark.slow
def test_new_frames_are_followed_only_from_the_last_frame(page: Page, maps: AppServer) -> None:
    the_map = open_map(page, maps, "scene=fox&grow=3")
    expect(label(the_map)).to_have_text("Step 3")
    the_map.locator("svg.picture").evaluate("svg => svg.mark = 'the same'")
    page.get_by_role("button", name="Grow").click()
    expect(label(the_map)).to_have_text("Step 4")
    the_map.get_by_role("button", name="Step back").click()
    expect(page.get_by_text("position=3")).to_be_visible()
    page.get_by_role("button", name="Grow").click()
    expect(the_map.locator("input.range")).to_have_attribute("max", "5")
    expect(label(the_map)).to_have_text("Step 3")
    assert the_map.locator("svg.picture").evaluate("svg => svg.mark") == "the same"


@pytest.mark.slow
def test_live_frames_resume_after_a_lost_websocket(page: Page, tmp_path: Path) -> None:
    """Two steps a connection: six steps need three. Nothing is sent twice, nothing is lost, nothing reruns."""
    with running_app(APPS / "live_map_app.py", tmp_path / "server.log", {"PYTHONPATH": str(ROOT)}) as server:
        received: list[str] = []

        def listen(socket: WebSocket) -> None:
            if socket.url.endswith("/frames"):
                socket.on("framereceived", lambda message: received.append(str(message)))

        page.on("websocket", listen)
        page.goto(server.url)
        the_map = page.locator(".st-key-map")
        expect(label(the_map)).to_have_text("Step 6")
        until_equal(lambda: steps_in(received), [0, 1, 2, 3, 4, 5, 6])
        the_map.get_by_text("The same as text and tables").click()
        until_equal(lambda: [row[2:4] for row in table_rows(the_map, "Sequences")], [["9", "8"]])
        go_to(the_map, 2)
        until_equal(lambda: [row[2:5] for row in table_rows(the_map, "Sequences")], [["5", "4", "6"]])
        expect(page.get_by_text("position=2 step=2")).to_be_visible()
        page.goto(f"{server.url}/?position=3")
        expect(label(the_map)).to_have_text("Step 3")


def steps_in(messages: list[str]) -> list[int]:
    return [frame["step"] for message in messages for frame in json.loads(message)["frames"]]


@pytest.mark.slow
def test_a_map_that_is_unmounted_and_remounted_works(page: Page, maps: AppServer) -> None:
    the_map = open_map(page, maps, "scene=fox&position=2&toggle=1&second=reservation")
    the_map.get_by_label("Speed, frames a second").select_option("0.5")
    the_map.get_by_role("button", name="Play (space)").click()
    page.get_by_text("Show the map").click()
    expect(the_map.locator("svg.picture")).to_have_count(0)
    page.get_by_text("Show the map").click()
    expect(label(the_map)).to_have_text("Step 2")
    page.wait_for_timeout(1200)
    expect(label(the_map)).to_have_text("Step 2")
    the_map.locator(".tok[data-pos='1']").hover()
    expect(lit(the_map, ".slot")).to_have_count(1)
    expect(lit(page.locator(".st-key-second"), ".hit")).to_have_count(1)


# ---- pointing -----------------------------------------------------------------------------------------


def test_a_token_highlights_its_row_its_block_and_its_slot(page: Page, maps: AppServer) -> None:
    the_map = open_map(page, maps, "scene=fox&position=7")
    the_map.locator(".tok[data-pos='5']").hover()
    expect(lit(the_map, ".row")).to_have_attribute("data-logical", "1")
    expect(lit(the_map, ".blk")).to_have_attribute("data-block", "1")
    expect(lit(the_map, ".slot")).to_have_attribute("data-off", "1")
    expect(lit(the_map, ".thread")).to_have_count(1)
    expect(the_map.locator(".readout")).to_contain_text("block_table[5 // 4] = block_table[1] = 1")
    expect(the_map.locator(".readout")).to_contain_text("slot = 1 × 4 + 5 % 4 = 5")
    page.mouse.move(0, 0)
    expect(the_map.locator(".lit")).to_have_count(0)


@pytest.mark.slow
def test_a_row_and_a_block_highlight_the_others_by_keyboard_alone(page: Page, maps: AppServer) -> None:
    the_map = open_map(page, maps, "scene=fox&position=7")
    the_map.locator(".row[data-logical='0']").focus()
    expect(lit(the_map, ".blk")).to_have_attribute("data-block", "6")
    page.keyboard.press("ArrowDown")
    expect(lit(the_map, ".blk")).to_have_attribute("data-block", "1")
    expect(lit(the_map, ".tok")).to_have_count(4)
    the_map.locator(".blk[data-block='0']").focus()
    page.keyboard.press("ArrowRight")
    expect(lit(the_map, ".row")).to_have_attribute("data-logical", "1")
    page.keyboard.press("Enter")
    expect(page.get_by_text("kind=block")).to_be_visible()
    expect(page.get_by_text("block=1 slot=None seq_id=A logical=1")).to_be_visible()


@pytest.mark.slow
def test_tab_visits_each_part_once_and_arrows_move_inside(page: Page, maps: AppServer) -> None:
    the_map = open_map(page, maps, "scene=fox&position=7")
    the_map.get_by_text("Export", exact=True).focus()
    for part in (".log summary", ".tok[data-pos='0']", ".row[data-logical='0']", ".blk[data-block='0']"):
        page.keyboard.press("Tab")
        expect(the_map.locator(part)).to_be_focused()
    page.keyboard.press("ArrowRight")
    expect(the_map.locator(".blk[data-block='1']")).to_be_focused()
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Tab")
    expect(the_map.locator(".blk[data-block='1']")).to_be_focused()


@pytest.mark.slow
def test_a_token_is_selected_by_keyboard_and_cleared_by_escape(page: Page, maps: AppServer) -> None:
    the_map = open_map(page, maps, "scene=fox&position=7")
    the_map.locator(".tok[data-pos='0']").focus()
    for _ in range(9):
        page.keyboard.press("ArrowRight")
    expect(lit(the_map, ".slot")).to_have_count(0)  # token 9 is known, its keys and values are not written
    expect(the_map.locator(".readout")).to_contain_text("keys and values not written yet")
    page.keyboard.press("ArrowLeft")
    expect(lit(the_map, ".slot")).to_have_attribute("data-block", "8")
    page.keyboard.press("Enter")
    expect(page.get_by_text("kind=token")).to_be_visible()
    page.keyboard.press("Escape")
    the_map.locator("input.range").focus()
    expect(the_map.locator(".lit")).to_have_count(0)


def test_a_shared_block_is_highlighted_in_both_tables(page: Page, maps: AppServer) -> None:
    the_map = open_map(page, maps, "scene=two_answers&position=2")
    the_map.locator(".blk[data-block='0'] .name").hover()
    expect(lit(the_map, ".row")).to_have_count(2)
    expect(the_map.locator(".readout")).to_contain_text("ref_cnt 2")


@pytest.mark.slow
def test_the_same_token_is_highlighted_in_every_map(page: Page, maps: AppServer) -> None:
    the_map = open_map(page, maps, "scene=fox&position=7&second=reservation")
    other = page.locator(".st-key-second")
    expect(other.locator(".hit").first).to_be_visible()
    the_map.locator(".tok[data-pos='2']").hover()
    expect(lit(other, ".tok")).to_have_text("fox")
    expect(lit(other, ".hit")).to_have_attribute("data-off", "2")
    other.locator(".hit[data-off='1']").hover()
    expect(lit(the_map, ".slot")).to_have_attribute("data-off", "1")


def test_a_click_is_reported_with_its_slot(page: Page, maps: AppServer) -> None:
    the_map = open_map(page, maps, "scene=fox&position=7")
    the_map.locator(".slot[data-block='8'][data-off='0']").click()
    expect(page.get_by_text("kind=slot")).to_be_visible()
    expect(page.get_by_text("block=8 slot=32 seq_id=A logical=2")).to_be_visible()
    expect(page.get_by_text("position=7")).to_be_visible()


def test_choosing_a_sequence_shows_its_words(page: Page, maps: AppServer) -> None:
    the_map = open_map(page, maps, "scene=two_answers&position=3")
    the_map.get_by_role("button", name="Show sequence A#1").click()
    expect(the_map.locator(".tok").nth(6)).to_have_text("hid")
    expect(page.get_by_text("kind=sequence")).to_be_visible()
    expect(page.get_by_text("seq_id=A#1")).to_be_visible()
