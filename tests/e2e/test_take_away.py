"""A run leaves the live page as files and comes back on another page; the same map stands in a document of its own."""

from __future__ import annotations

import csv
import io
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import pytest
from playwright.sync_api import Browser, Page, expect

from course.pages import OPEN_TRACE
from engine import Engine, SamplingParams, Trace
from engine.trace.codec import event_to_dict
from engine.trace.export import block_tables_csv, blocks_csv
from tests.helpers.accessibility import expect_no_violations
from tests.helpers.app_server import AppServer
from tests.helpers.course_reader import CourseReader
from tests.helpers.live_page import LivePage
from tests.helpers.map_traces import busy
from tests.helpers.navigation import navigation_link
from tests.helpers.waiting import until_equal
from views.live.config import live_config
from views.memory_map.narration import headline
from views.memory_map.notebook import map_document

PROMPT = "=1+1 <b>日本</b>"


@pytest.fixture(scope="module")
def engine() -> Engine:
    engine = Engine(live_config("tiny-random", 4, 32, True, "recompute"))
    engine.add_request(PROMPT, SamplingParams(temperature=0.7, max_tokens=24, n=2, seed=3))
    for _ in range(4):
        engine.step()
    return engine


def saved(live: LivePage, key: str) -> str:
    with live.page.expect_download() as download:
        live.button(key).click()
    return Path(download.value.path()).read_text("utf-8")


def told(trace: Trace) -> list[dict[str, object]]:
    """Events without what each run measures anew."""
    events = [event_to_dict(event) for event in trace]
    return [{k: v for k, v in event.items() if k not in ("elapsed_ms", "logprob")} for event in events]


@pytest.mark.slow
def test_a_trace_and_its_tables_are_exported_and_reopened(
    page: Page, app_server: AppServer, engine: Engine, tmp_path: Path
) -> None:
    live = LivePage(page, app_server.url).open(block_size=4, num_blocks=32, samples=2, seed=3)
    live.setting("Prompt").fill(PROMPT)
    live.add()
    live.step(4)
    live.tool("Download")
    text = saved(live, "live_json")
    trace = Trace.from_json(text)
    assert told(trace) == told(engine.trace)
    until_equal(lambda: saved(live, "live_tables"), block_tables_csv(trace))
    the_map = page.locator(".st-key-memory_map")
    the_map.get_by_role("button", name="Step back").click()
    expect(page.get_by_text("the tables after step 3")).to_be_visible()
    live.settle()
    blocks = blocks_csv(trace, 3)
    until_equal(lambda: saved(live, "live_blocks"), blocks)
    assert {row["status"] for row in csv.DictReader(io.StringIO(blocks))} == {"used", "free"}
    assert saved(live, "live_html").startswith("<!DOCTYPE html>")
    the_map.get_by_text("Export").click()
    with page.expect_download() as picture:
        the_map.get_by_role("button", name="SVG picture").click()
    assert "Step 3" in "".join(ET.parse(picture.value.path()).getroot().itertext())

    file = tmp_path / "trace.json"
    file.write_text(text, "utf-8")
    navigation_link(live.page, OPEN_TRACE).click()
    page.locator(".st-key-trace_file input[type=file]").set_input_files(file)
    opened = page.locator(".st-key-opened_map")
    expect(opened.locator(".bar .label")).to_have_text("Step 4")
    expect(opened.locator(".say")).to_have_text(headline(trace.events_of(4)))
    opened.get_by_role("button", name="Step back").click()
    opened.get_by_role("button", name="Step back").click()
    expect(page.locator("summary", has_text="Physical blocks after step 2")).to_be_visible()
    live.expect_figure("step", "2")
    until_equal(lambda: saved(live, "opened_blocks"), blocks_csv(trace, 2))
    assert saved(live, "opened_json") == trace.to_json()


@pytest.mark.slow
def test_a_file_that_is_no_trace_is_refused_with_a_reason(page: Page, app_server: AppServer, tmp_path: Path) -> None:
    file = tmp_path / "theirs.json"
    page.goto(f"{app_server.url}/open_trace")
    for data, sentence in (
        (b"{}", "This is not a trace file of schema 1."),
        (b'{"schema": 1, "events": [{"type": "<img src=x onerror=alert(1)>"}]}', "unknown event type '<img src=x"),
        (b'{"schema": 1}\xff', "This file is not text in UTF-8."),
        (b" " * 10_000_001, "This file is larger than 10 MB, the most that is read here."),
    ):
        file.write_bytes(data)
        page.locator(".st-key-trace_file input[type=file]").set_input_files(file)
        expect(page.get_by_role("alert")).to_contain_text(sentence)
        expect(page.locator("img[src='x']")).to_have_count(0)
        page.get_by_role("button", name="Open another file").click()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.slow
def test_an_opened_trace_is_accessible(
    browser: Browser, app_server: AppServer, tmp_path: Path, scheme: Literal["light", "dark"]
) -> None:
    file = tmp_path / "trace.json"
    file.write_text(busy().to_json(), "utf-8")
    context = browser.new_context(color_scheme=scheme, reduced_motion="reduce")
    reader = CourseReader(context.new_page(), app_server.url).arrive()
    reader.turn_to(OPEN_TRACE)
    reader.page.locator(".st-key-trace_file input[type=file]").set_input_files(file)
    expect(reader.page.locator(".st-key-opened_map .bar .label")).to_have_text("Step 29")
    reader.open_everything()
    expect_no_violations(reader.page)
    reader.resize(375, 812)
    reader.expect_to_fit(375)
    reader.check()
    context.close()


@pytest.fixture(params=["light", "dark"])
def notebook(browser: Browser, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Page]:
    """The document of a busy run, opened from the disk. Whatever it asks of any machine is a failure."""
    (tmp_path / "map.html").write_text(map_document(busy(), "A busy run"), "utf-8")
    context = browser.new_context(color_scheme=request.param, reduced_motion="reduce")
    page = context.new_page()
    asked: list[str] = []
    page.on("request", lambda r: asked.append(r.url) if not r.url.startswith(("file:", "data:", "blob:")) else None)
    page.on("console", lambda message: asked.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: asked.append(str(error)))
    page.goto((tmp_path / "map.html").as_uri())
    yield page
    assert asked == []
    context.close()


def test_the_exported_document_plays_without_a_server(notebook: Page) -> None:
    trace = busy()
    label = notebook.locator(".bar .label")
    expect(label).to_have_text(f"Step {trace.num_steps}")
    notebook.get_by_role("button", name="First frame").click()
    notebook.get_by_role("button", name="Step forward").click()
    expect(label).to_have_text("Step 1")
    used = [block.block_id for block in trace.at(1).blocks if block.status == "used"]
    until_equal(lambda: _blocks(notebook, ".blk.used"), used)
    notebook.get_by_text("Export").click()
    with notebook.expect_download() as picture:
        notebook.get_by_role("button", name="PNG picture").click()
    assert Path(picture.value.path()).read_bytes().startswith(b"\x89PNG")
    expect_no_violations(notebook)


def _blocks(page: Page, selector: str) -> list[int]:
    numbers: list[str] = page.locator(selector).evaluate_all("blocks => blocks.map(block => block.dataset.block)")
    return sorted(map(int, numbers))
