"""What readers of tools like this have reported, row by row of the design's table of pitfalls, as far as a lesson can
fall into it. Each test names its row. (The map alone: `test_memory_map.py`; the live page: `test_live_page.py`.)"""

from __future__ import annotations

import re
from collections.abc import Iterator
from urllib.parse import urlencode

import pytest
from playwright.sync_api import Browser, Locator, expect

from course.batch.lesson import LESSON as BATCH
from course.block_table.lesson import LESSON as BLOCK_TABLE
from course.block_table.scene import block_table
from course.sharing.lesson import LESSON as SHARING
from course.sharing.scene import copy_on_write
from tests.helpers.app_server import AppServer
from tests.helpers.course_reader import DESKTOP, CourseReader
from tests.helpers.map_page import cells_of, grab_left_end
from tests.helpers.waiting import until, until_equal
from views.browser.text_safe import visible_piece


@pytest.fixture(scope="module")
def tab(browser: Browser, app_server: AppServer) -> Iterator[CourseReader]:
    context = browser.new_context(reduced_motion="reduce", viewport=DESKTOP)
    yield CourseReader(context.new_page(), app_server.url)
    context.close()


@pytest.fixture
def reader(tab: CourseReader) -> Iterator[CourseReader]:
    yield tab
    tab.check()


def open_lesson(reader: CourseReader, address: str | None, **query: object) -> CourseReader:
    """A fresh visit: whatever another test did in this tab is gone."""
    return reader.arrive(f"{address}?{urlencode(query)}")


def label(the_map: Locator) -> Locator:
    return the_map.locator(".bar .label")


def figure(the_map: Locator, key: str) -> Locator:
    return the_map.locator(f"[data-figure='{key}']")


def block(the_map: Locator, block_id: int) -> Locator:
    return the_map.locator(f".blk[data-block='{block_id}']")


# ---- streamlit 11879: a slider answers on release only ----


@pytest.mark.slow
def test_11879_the_picture_follows_the_drag_and_python_is_told_on_release(reader: CourseReader) -> None:
    open_lesson(reader, BATCH.url_path, requests=0)
    the_map, below = reader.the_map("map_batch"), reader.the_map("map_in_blocks")
    y = grab_left_end(the_map.locator("input.range"))
    box = the_map.locator("input.range").bounding_box()
    assert box is not None
    reader.page.mouse.move(box["x"] + box["width"] / 2, y, steps=6)
    expect(label(the_map)).to_have_text("5 requests")
    expect(figure(the_map, "difference")).to_have_text("36 % fewer")
    expect(below.get_by_text("physical memory: 16 used")).to_be_visible()
    expect(below.get_by_text("64 slots in all, 11 of them empty")).to_be_visible()
    assert "requests=0" in reader.page.url, "nothing was asked of the server"
    reader.page.mouse.up()
    reader.page.wait_for_url("**requests=5*")


# ---- streamlit 5813: values are lost when the reader turns the page ----


@pytest.mark.slow
def test_5813_values_survive_a_visit_to_every_page(reader: CourseReader) -> None:
    open_lesson(reader, BLOCK_TABLE.url_path, step=6, request="B", token=2)
    reader.visit_all()
    reader.turn_to(BLOCK_TABLE)
    expect(label(reader.the_map("map_block_table"))).to_have_text("A: 6 tokens written")
    expect(reader.page.get_by_label("Token", exact=True)).to_have_value("2")
    expect(reader.page.locator("[data-block-table='B']")).to_be_visible()
    reader.page.wait_for_url(lambda url: "step=6" in url and "request=B" in url)


# ---- streamlit 10229, 14350: reloads, and values in the address that cannot be ----


@pytest.mark.slow
def test_10229_a_reload_keeps_the_position_and_a_link_opens_it_elsewhere(reader: CourseReader) -> None:
    open_lesson(reader, SHARING.url_path, text="one two three four five six", after=5, seed=12)
    forks = reader.the_map("map_forking")
    expect(label(forks)).to_have_text("fork after 5 words")
    forks.get_by_role("button", name="Step back").click()
    expect(label(forks)).to_have_text("fork after 4 words")
    reader.page.wait_for_url("**after=4*")
    reader.page.reload()
    reader.settle()
    expect(label(forks)).to_have_text("fork after 4 words")
    other = reader.page.context.new_page()
    other.goto(reader.page.url)
    expect(label(other.locator(".st-key-map_forking"))).to_have_text("fork after 4 words")
    expect(other.locator(".pv-ask")).to_have_attribute("data-seed", "12")
    expect(other.get_by_label("Your words")).to_have_value("one two three four five six")
    other.close()


@pytest.mark.parametrize(
    ("raw", "value", "sentence"),
    [
        ("0", "1", "Block size must be a whole number from 1 to 64: '0' was changed to 1."),
        ("-1", "1", "Block size must be a whole number from 1 to 64: '-1' was changed to 1."),
        ("1e9", "64", "Block size must be a whole number from 1 to 64: '1e9' was changed to 64."),
        ("abc", "4", "Block size: 'abc' in the address is not a number, so it was set to 4."),
        ("NaN", "4", "Block size: 'NaN' in the address is not a number, so it was set to 4."),
    ],
)
@pytest.mark.slow
def test_14350_a_bad_value_is_clamped_with_a_note(reader: CourseReader, raw: str, value: str, sentence: str) -> None:
    open_lesson(reader, BATCH.url_path, block_size=raw)
    expect(reader.page.get_by_label("Block size")).to_have_value(value)
    expect(reader.page.get_by_text(sentence)).to_be_visible()


# ---- streamlit 8291: several clicks in one rerun ----


@pytest.mark.slow
def test_8291_ten_clicks_at_once_are_ten_steps(reader: CourseReader) -> None:
    open_lesson(reader, BATCH.url_path, requests=0)
    the_map = reader.the_map("map_batch")
    the_map.get_by_role("button", name="Step forward").evaluate(
        "async b => { for (let i = 0; i < 10; i++) { b.click(); await new Promise(d => setTimeout(d, 30)); } }"
    )
    expect(label(the_map)).to_have_text("10 requests")
    reader.page.wait_for_url("**requests=10*")
    expect(figure(the_map, "reserved.num_held")).to_have_text("200")


# ---- streamlit 8760: clicks on a picture return nothing ----


def test_the_worked_examples_table_is_on_the_rendered_page(reader: CourseReader) -> None:
    open_lesson(reader, BLOCK_TABLE.url_path)
    rows = reader.page.locator("[data-block-table='A'] tbody tr")
    until_equal(lambda: [cells[:2] for cells in cells_of(rows)], [["0", "6"], ["1", "1"], ["2", "8"]])
    expect(figure(reader.the_map("map_block_table"), "usage.num_blocks")).to_have_text("9")


def test_8760_a_click_on_block_8_marks_its_row_and_a_click_on_a_token_follows_it(reader: CourseReader) -> None:
    open_lesson(reader, BLOCK_TABLE.url_path)
    the_map = reader.the_map("map_block_table")
    block(the_map, 8).locator(".name").click()
    expect(the_map.locator("svg .row.lit")).to_have_attribute("data-logical", "2")
    the_map.locator(".slot[data-block='3'][data-off='1']").click()
    expect(reader.page.locator("[data-figure='slot']")).to_have_text("10")
    expect(reader.page.get_by_text("Token 1 of B is")).to_be_visible()
    reader.page.wait_for_url("**request=B*")


def test_8760_hovering_a_token_highlights_its_row_its_block_and_its_slot(reader: CourseReader) -> None:
    open_lesson(reader, BLOCK_TABLE.url_path)
    the_map = reader.the_map("map_block_table")
    the_map.locator(".tok[data-pos='5']").hover()
    expect(the_map.locator("svg .row.lit")).to_have_attribute("data-logical", "1")
    expect(the_map.locator("svg .blk.lit")).to_have_attribute("data-block", "1")
    expect(the_map.locator("svg .slot.lit")).to_have_attribute("data-off", "2")


# ---- streamlit 8782: charts flicker ----


@pytest.mark.slow
def test_8782_nothing_is_redrawn_on_navigation(reader: CourseReader) -> None:
    """Twenty moves and the answers of the server to them: the same chart and the same pictures. New values of a
    control: the same pictures still."""
    open_lesson(reader, BATCH.url_path, requests=0)
    the_map = reader.the_map("map_batch")
    chart = reader.page.locator(".st-key-slots_by_requests .js-plotly-plot")
    pictures = [m.locator("svg.picture") for m in (the_map, reader.the_map("map_in_blocks"))]
    for drawn in (chart, *pictures):
        expect(drawn).to_be_visible(timeout=20_000)
        drawn.evaluate("element => element.mark = 'the same'")
    for value in (*range(1, 11), *range(9, -1, -1)):
        the_map.locator("input.range").fill(str(value))
    reader.settle()
    expect(label(the_map)).to_have_text("0 requests")
    assert [drawn.evaluate("element => element.mark") for drawn in (chart, *pictures)] == ["the same"] * 3
    reader.page.get_by_role("button", name="Blocks of 16").click()
    expect(label(the_map)).to_have_text("10 requests")
    assert [drawn.evaluate("element => element.mark") for drawn in pictures] == ["the same"] * 2


# ---- colours: red and green, hue alone ----


@pytest.mark.slow
def test_colour_is_never_the_only_sign_of_who_holds_a_block(reader: CourseReader) -> None:
    open_lesson(reader, BLOCK_TABLE.url_path)
    the_map = reader.the_map("map_block_table")
    for state in block_table().at(7).blocks:
        expect(block(the_map, state.block_id)).to_be_visible(timeout=20_000)
        words = block(the_map, state.block_id).locator("text").all_text_contents()
        [owner] = [seq_id for seq_id, _index in state.owners.items()] or ["free"]
        assert any(owner in word for word in words), f"block {state.block_id}: {words}"


# ---- charts without names ----


@pytest.mark.slow
def test_every_chart_has_its_numbers_as_text(reader: CourseReader) -> None:
    open_lesson(reader, BATCH.url_path)
    expect(reader.page.get_by_test_id("stPlotlyChart")).to_have_count(1)
    expect(reader.page.get_by_text(re.compile("the same as a table$"))).to_have_count(1)
    reader.page.get_by_text("Slots by number of requests: the same as a table").click()
    table = reader.page.get_by_role("table", name="Slots by number of requests")
    until_equal(lambda: cells_of(table.locator("tbody tr"), "td")[4:5], [["5", "100", "64", "53", "36 % fewer"]])
    open_lesson(reader, BATCH.url_path, show="KV cache usage")
    expect(reader.page.get_by_test_id("stPlotlyChart")).to_have_count(1)
    expect(reader.page.get_by_text("Blocks used and slots used for this batch: the same as a table")).to_be_visible()


@pytest.mark.slow
def test_a_whole_lesson_by_keyboard_alone(reader: CourseReader) -> None:
    """Answer the question, move the picture, step back, shuffle, follow a token: never the mouse."""
    open_lesson(reader, BLOCK_TABLE.url_path, seed=4)
    page, the_map = reader.page, reader.the_map("map_block_table")
    tab_to(reader, "Predict first")
    page.keyboard.press("Enter")
    tab_to(reader, "radio")
    page.keyboard.press("Space")
    expect(page.locator("[data-verdict='right'], [data-verdict='wrong']")).to_be_visible()
    reader.settle()
    tab_to(reader, "Shuffle the blocks")
    page.keyboard.press("Enter")
    expect(page.get_by_role("button", name="Undo the shuffle")).to_be_enabled()
    reader.settle()
    blocks = page.locator("[data-block-table='A'] tbody td:nth-child(2)")
    until(lambda: blocks.all_inner_texts() not in ([], ["6", "1", "8"]), what="A in other blocks")
    tab_to(reader, "Step back (left arrow)")
    page.keyboard.press("Enter")
    expect(block(the_map, 6)).to_have_class(re.compile("used"))
    reader.page.wait_for_url("**step=7*")
    tab_to(reader, "Token")
    page.keyboard.press("ArrowUp")
    expect(page.locator("[data-figure='slot']")).to_have_text("24")


def tab_to(reader: CourseReader, name: str) -> None:
    """Press Tab until the focus is on what has that name or role; fails when it cannot be reached."""
    focused = """() => {
        let e = document.activeElement;
        while (e?.shadowRoot?.activeElement) e = e.shadowRoot.activeElement;
        return [e?.type, e?.getAttribute('aria-label'), e?.textContent?.trim()];
    }"""
    for _ in range(60):
        reader.page.keyboard.press("Tab")
        if any(text and (text == name or text.endswith(name)) for text in reader.page.evaluate(focused)):
            return
    raise AssertionError(f"{name} cannot be reached by keyboard")


# ---- streamlit 8099 and HTML in prompts: the reader's words are shown as they are ----

HOSTILE = "$5 and $6 **b** :red[x] `t` <img/src=x/onerror=alert(1)> </svg> &amp; 👩‍👩‍👧‍👦 日本語"


def test_8099_typed_text_is_shown_verbatim_and_never_interpreted(reader: CourseReader) -> None:
    open_lesson(reader, SHARING.url_path, text=HOSTILE, other="<script>document.title='x'</script> $1$", after=3)
    forks = reader.the_map("map_forking")
    forks.get_by_text("The same as text and tables").click()
    expect(forks.locator("table").last).to_contain_text("$5")
    scene = copy_on_write(HOSTILE.split(), ("<script>document.title='x'</script>", "$1$"))[3]
    stored = {slot.piece for state in scene.at(1).blocks for slot in state.slots if slot}
    assert {"$5", "and", "$6", "**b**", "<script>document.title='x'</script>"} == stored
    cells = forks.locator("table td")
    until_equal(lambda: {p for p in stored if visible_piece(p) in " ".join(cells.all_inner_texts())}, stored)
    expect(reader.page.locator("[data-testid=stMain] img, [data-testid=stMain] .katex, svg script")).to_have_count(0)
    expect(reader.page).to_have_title("6 Sharing")


# ---- streamlit 9342: a value outside a maximum that moved ----


@pytest.mark.slow
def test_9342_a_fork_position_past_the_end_is_clamped(reader: CourseReader) -> None:
    open_lesson(reader, SHARING.url_path, text="one two three four five six", after=5)
    words = reader.page.get_by_label("Your words")
    for text, expected in (("one two three", "fork after 2 words"), ("one two", "fork after 1 word")):
        words.fill(text)
        words.press("Enter")
        expect(label(reader.the_map("map_forking"))).to_have_text(expected)
        reader.settle()
    expect(reader.page.get_by_text("After must be a whole number from 1 to 2: '5' was changed to 2.")).to_have_count(0)
