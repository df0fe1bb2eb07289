"""The page over a live server of our own and over the recorded stream, in a browser."""

from __future__ import annotations

import os
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import pytest
from playwright.sync_api import Browser, Page, expect

from engine.remote.http import post_json
from engine.remote.metrics import OURS
from engine.trace.trace import Trace
from tests.helpers.accessibility import expect_no_violations
from tests.helpers.app_server import AppServer
from tests.helpers.course_reader import DESKTOP, CourseReader
from tests.helpers.remote_page import MILLISECONDS, RemotePage
from tests.helpers.serve import TINY, ServedEngine, served_engine
from tests.helpers.vllm_server import MODEL_NAME, VARIABLES, WITHOUT_VLLM, vllm_server
from views.remote.vocabulary import BY_SERVER

HOSTILE = "<img src=x onerror=alert(1)> $5 **b** :red[x]"


@pytest.fixture(scope="module")
def served() -> Iterator[ServedEngine]:
    with served_engine() as server:
        yield server


@pytest.fixture
def remote(page: Page, app_server: AppServer) -> RemotePage:
    return RemotePage(page, app_server.url)


def attach(remote: RemotePage, served: ServedEngine) -> RemotePage:
    publisher = served.publisher
    remote.open(events=publisher.endpoint, replay=publisher.replay_endpoint, api=served.url)
    remote.press("attach")
    expect(remote.page.get_by_role("heading", name=f"{OURS} at tcp://")).to_be_visible(timeout=MILLISECONDS)
    return remote


def complete(served: ServedEngine, prompt: str, max_tokens: int) -> str:
    answer = served.client.completions.create(
        model=TINY, prompt=prompt, max_tokens=max_tokens, temperature=0, extra_body={"ignore_eos": True}
    )
    return answer.choices[0].text


def num_held(served: ServedEngine) -> tuple[str, str]:
    """Different contents and copies in the engine's own pool."""
    cached = served.engine.kv.pool._cached_blocks
    return str(len(cached)), str(sum(map(len, cached.values())))


def test_a_clients_request_is_shown_as_it_is_in_the_pool(remote: RemotePage, served: ServedEngine) -> None:
    complete(served, "before the page looked", 6)
    attach(remote, served)
    remote.expect_figure("num_blocks", num_held(served)[0])
    complete(served, "after it looked: " + HOSTILE, 6)
    blocks, copies = num_held(served)
    remote.expect_figure("num_blocks", blocks)
    remote.expect_figure("num_extra_copies", str(int(copies) - int(blocks)))
    remote.expect_figure("pool_blocks", "48")
    expect(remote.cards).to_have_count(int(copies))
    expect(remote.page.get_by_label("Show tokens as")).to_have_value(BY_SERVER)
    expect(remote.radix_tree).to_contain_text("after it looked: " + HOSTILE, timeout=MILLISECONDS)
    expect(remote.page.locator("img[src=x]")).to_have_count(0)
    expect(remote.page.get_by_text("stored blocks (physical place unknown)")).to_be_visible()
    expect(remote.page.locator(".st-key-remote_map")).not_to_contain_text("ref_cnt", use_inner_text=True)


@pytest.mark.slow
def test_the_prefix_tree_opens_on_a_shared_prefix_and_stays_as_the_reader_leaves_it(
    remote: RemotePage, served: ServedEngine
) -> None:
    for end in ("first", "second"):
        complete(served, "shared by them: " + end, 2)
    attach(remote, served)
    shared = remote.branch("shared by them: ")
    expect(shared).to_have_attribute("open", "", timeout=MILLISECONDS)
    expect(shared.locator("li").filter(has_text="seco")).to_be_visible()  # its last whole block
    shared.locator("summary").first.click()
    expect(shared).not_to_have_attribute("open", "")
    complete(served, "shared by them: third", 2)
    expect(shared.locator("summary").first).to_contain_text("3 branches", timeout=MILLISECONDS)
    expect(shared).not_to_have_attribute("open", "")


@pytest.mark.slow
def test_one_time_axis_shows_hit_rate_preemptions_and_evictions_with_the_blocks(
    remote: RemotePage, served: ServedEngine
) -> None:
    attach(remote, served)
    for _again in range(2):
        complete(served, "looked up twice within ten seconds", 4)
    chart = remote.page.locator(".st-key-timeline")
    for title in ("Blocks stored", "Blocks in each second", "Percent", "Preemptions in each second"):
        expect(chart).to_contain_text(title, timeout=MILLISECONDS)
    for line in ("evicted", "hit rate", "cache in use", "preempted"):
        expect(chart.locator(".legendtext").filter(has_text=line)).to_be_visible(timeout=MILLISECONDS)


@pytest.mark.slow
@pytest.mark.skipif(not set(os.environ) >= VARIABLES, reason=WITHOUT_VLLM)
def test_a_real_vllms_tokens_are_words_on_the_page(remote: RemotePage, tmp_path: Path) -> None:
    with vllm_server(tmp_path / "server.log") as vllm:
        remote.open(events=vllm.events, replay=vllm.replay, api=vllm.api)
        remote.press("attach")
        expect(remote.page.get_by_role("heading", name="vLLM at tcp://")).to_be_visible(timeout=MILLISECONDS)
        preamble = "The librarian keeps every page of every book in small boxes, and a list says which comes next. " * 3
        for question in ("Where is the first page? ", "Who may read the last page? "):
            body = {"model": MODEL_NAME, "prompt": preamble + 8 * question, "max_tokens": 2, "temperature": 0}
            post_json(vllm.api, "/v1/completions", body, seconds=120)
        shared = remote.branch("The librarian keeps every page of every book")
        expect(shared).to_have_attribute("open", "", timeout=MILLISECONDS)
        expect(shared).to_contain_text("Who may read the last page?")


@pytest.mark.slow
def test_a_prompt_from_the_page_is_answered_and_its_blocks_are_marked(remote: RemotePage, served: ServedEngine) -> None:
    attach(remote, served)
    remote.page.get_by_label("Prompt for the server").fill("mark my blocks")
    remote.page.get_by_text("As chat").click()
    remote.settle()
    remote.page.get_by_label("New tokens at most").fill("4")
    remote.page.keyboard.press("Tab")
    remote.settle()
    remote.press("send_prompt")
    said = remote.page.get_by_text("This prompt and its answer stored 4 blocks and found 0 blocks already cached.")
    expect(said).to_be_visible(timeout=MILLISECONDS)
    expect(remote.page.locator("[data-mark=stored]")).to_have_text("4 stored by your prompt", timeout=MILLISECONDS)
    expect(remote.page.get_by_role("heading", name="The server's own metrics")).to_be_visible(timeout=MILLISECONDS)
    expect_no_violations(remote.page)


@pytest.mark.slow
def test_time_travel_and_export(remote: RemotePage, served: ServedEngine, tmp_path: Path) -> None:
    complete(served, "something to travel back from", 4)
    attach(remote, served)
    blocks, _ = num_held(served)
    remote.expect_figure("num_blocks", blocks)
    remote.page.get_by_text("Follow the server").click()
    remote.settle()
    slider = remote.page.locator(".st-key-remote_moment input[type=range]")
    expect(slider).to_be_visible(timeout=MILLISECONDS)
    slider.press("Home")
    expect(remote.page.get_by_text("Nothing is known about the cache yet")).to_be_visible(timeout=MILLISECONDS)
    with remote.page.expect_download() as download:
        remote.button("remote_export").click()
    file = tmp_path / "trace.json"
    download.value.save_as(file)
    trace = Trace.from_json(file.read_text("utf-8"))
    assert trace.at(trace.num_steps).prefix_cache.num_blocks == int(blocks)


@pytest.mark.slow
def test_a_cleared_cache_is_shown_empty_and_fills_again(remote: RemotePage, served: ServedEngine) -> None:
    complete(served, "something to throw away", 4)
    attach(remote, served)
    remote.expect_figure("num_blocks", num_held(served)[0])
    with urllib.request.urlopen(urllib.request.Request(f"{served.url}/reset_prefix_cache", b""), timeout=10):
        pass
    remote.expect_figure("num_blocks", "0")
    expect(remote.cards).to_have_count(0)
    complete(served, "and again", 4)
    remote.expect_figure("num_blocks", "3")
    expect(remote.cards).to_have_count(3)


@pytest.mark.slow
def test_the_recorded_stream_opens_with_one_click_and_shows_the_right_numbers(remote: RemotePage) -> None:
    remote.open()
    remote.press("open_recorded")
    remote.expect_figure("num_blocks", "21")
    remote.expect_figure("num_stored", "37")
    remote.expect_figure("num_removed", "16")
    remote.expect_figure("occupancy", "88 %")
    expect(remote.cards).to_have_count(21)
    expect(remote.page.get_by_text("Recorded earlier")).to_be_visible()
    remote.press("close_remote")
    expect(remote.cards).to_have_count(0)


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.slow
def test_an_opened_stream_is_accessible_and_fits_a_phone(
    browser: Browser, app_server: AppServer, theme: Literal["light", "dark"]
) -> None:
    context = browser.new_context(color_scheme=theme, reduced_motion="reduce", viewport=DESKTOP)
    reader = CourseReader(context.new_page(), app_server.url).arrive("remote_server")
    RemotePage(reader.page, app_server.url).press("open_recorded")
    reader.settle()
    reader.open_everything()
    expect_no_violations(reader.page)
    reader.resize(375, 812)
    reader.expect_to_fit(375)
    reader.check()
    context.close()


@pytest.mark.slow
def test_disabled_events_are_reported_with_the_option_to_set(remote: RemotePage, served: ServedEngine) -> None:
    remote.open(events="tcp://127.0.0.1:1", replay="", api=served.url)
    remote.press("attach")
    alert = remote.page.get_by_role("alert").first
    expect(alert).to_contain_text("events are off. Start it with --events tcp://", timeout=MILLISECONDS)
