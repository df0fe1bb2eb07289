"""Finished steps are never lost: a reload, another page, a link opened elsewhere bring the run back."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import parse_qs, urlparse

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from course.pages import LIVE_ENGINE, SUMMARY
from engine import Engine, SamplingParams
from tests.helpers.app_server import ROOT, AppServer, running_app
from tests.helpers.live_page import MODEL_MILLISECONDS, LivePage
from tests.helpers.navigation import navigation_link
from tests.helpers.waiting import until, until_equal
from views.live.config import live_config
from views.live.recipe import LONGEST_TEXT, Recipe


@pytest.fixture
def live(page: Page, app_server: AppServer) -> LivePage:
    return LivePage(page, app_server.url)


@pytest.fixture
def elsewhere(browser: Browser) -> Iterator[Page]:
    """A browser that knows nothing of the first one."""
    context = browser.new_context(viewport={"width": 1280, "height": 900}, reduced_motion="reduce")
    yield context.new_page()
    context.close()


def in_address(page: Page) -> dict[str, str]:
    return {name: values[0] for name, values in parse_qs(urlparse(page.evaluate("location.href")).query).items()}


def num_steps_in_address(page: Page) -> int | None:
    text = in_address(page).get("run")
    return None if text is None else Recipe.from_text(text).num_steps


def link_of(live: LivePage) -> str:
    """The address once it has caught up with the page."""
    live.settle()
    live.page.wait_for_url(lambda url: "run=" in url)
    return live.page.url


def a_busy_run(live: LivePage) -> Engine:
    """Three requests, a fork and an abort, by hand; and the same in an engine of this process."""
    live.open(prompt="abcdef", block_size=3, num_blocks=40, temperature=1.5, seed=5)
    live.add()
    live.step(2)
    live.button("fork").click()
    expect(live.requests).to_have_count(2)
    live.step()
    live.setting("Prompt").fill("  tab\there")
    live.add()
    live.step(2)
    live.choose_request("A")
    live.button("abort").click()
    live.expect_status("A", "finished")
    live.step()

    engine = Engine(live_config("tiny-random", 3, 40, True, "recompute"))
    params = SamplingParams(temperature=1.5, max_tokens=24, seed=5)
    engine.add_request("abcdef", params)
    engine.step()
    engine.step()
    engine.fork_request("A", 6)
    engine.step()
    engine.add_request("  tab\there", params)
    engine.step()
    engine.step()
    engine.abort_request("A")
    engine.step()
    return engine


def assert_shows(live: LivePage, engine: Engine) -> None:
    state = engine.snapshot()
    live.expect_figure("step", str(state.step))
    for name, request in state.requests.items():
        live.expect_status(name, request.status)
    for name in ("B", "C"):
        live.expect_reply(name, engine.output(name).outputs[0].text)
        live.choose_request(name)
        blocks = [str(block_id) for block_id in state.sequences[name].block_table]
        until_equal(lambda name=name: [row[1] for row in live.table(name)], blocks)
    live.expect_prompt("C", "  tab\there")


@pytest.mark.slow
def test_a_run_is_restored_after_a_reload_in_another_browser_and_without_its_engine(
    live: LivePage, elsewhere: Page, app_server: AppServer
) -> None:
    engine = a_busy_run(live)
    name = in_address(live.page)["engine"]
    live.page.reload()
    expect(live.button("add")).to_be_enabled(timeout=30_000)
    assert_shows(live, engine)
    live.page.wait_for_url(lambda url: f"engine={name}" in url)  # the same engine, not another one
    link = link_of(live)

    other = LivePage(elsewhere, app_server.url)
    for address in (link, link.replace(name, "forgotten")):
        elsewhere.goto(address)
        other.expect_figure("step", "6")
        expect(other.button("add")).to_be_enabled()
        other.settle()
        assert_shows(other, engine)
        own = re.compile(rf"[?&]engine=(?!{re.escape(name)}|forgotten)")
        elsewhere.wait_for_url(own)
    live.step()
    engine.step()
    assert_shows(live, engine)
    other.expect_figure("step", "6")


@pytest.mark.slow
def test_the_viewed_step_is_in_the_url_and_restored(live: LivePage, elsewhere: Page) -> None:
    live.open(prompt="abcdef", num_blocks=40)
    live.add()
    live.step(5)
    the_map = live.page.locator(".st-key-memory_map")
    for _ in range(3):
        the_map.get_by_role("button", name="Step back").click()
    live.page.wait_for_url(lambda url: "at=2" in url)
    elsewhere.goto(link_of(live))
    expect(elsewhere.locator(".st-key-memory_map .bar .label")).to_have_text("Step 2")
    expect(elsewhere.locator("[data-figure=step]").first).to_have_text("5")
    live.step()
    expect(the_map.locator(".bar .label")).to_have_text("Step 6")
    live.page.wait_for_url(lambda url: "at=" not in url)


@pytest.mark.slow
def test_back_leaves_the_page_instead_of_walking_through_the_steps(live: LivePage) -> None:
    live.page.goto(f"{live.base_url}/summary")
    expect(live.page.get_by_role("heading", name=SUMMARY.title)).to_be_visible(timeout=30_000)
    live.open(prompt="abcdef")
    live.add()
    live.step(3)
    live.page.go_back()
    expect(live.page.get_by_role("heading", name=SUMMARY.title)).to_be_visible()


@pytest.mark.slow
def test_a_run_continues_while_the_tab_is_on_another_page(live: LivePage) -> None:
    live.open(prompt="abcdef", max_tokens=400, num_blocks=200, pace="5 steps a second", stop_at_end="false")
    live.add()
    live.button("run").click()
    live.wait_for_step(2)
    navigation_link(live.page, SUMMARY).click()
    expect(live.page.get_by_role("heading", name=SUMMARY.title)).to_be_visible()
    live.page.wait_for_timeout(2000)
    navigation_link(live.page, LIVE_ENGINE).click()
    expect(live.button("pause")).to_be_enabled()
    assert int(live.figure("step")) >= 5, "ten steps or so in the meantime"
    live.button("pause").click()
    expect(live.button("step")).to_be_enabled()


@pytest.mark.slow
def test_a_run_too_long_for_a_link_is_reported_and_survives_a_reload(live: LivePage) -> None:
    live.open(num_blocks=512, block_size=8)
    noise = "".join(map(chr, random.Random(1).sample(range(0x4E00, 0x9F00), 900)))
    live.setting("Prompt").fill(noise)
    live.add()
    expect(live.page.get_by_text("This run is too long for a link")).to_be_visible()
    live.step()
    assert "run" not in in_address(live.page)
    live.page.reload()
    expect(live.button("add")).to_be_enabled(timeout=30_000)
    live.expect_figure("step", "1")
    live.expect_prompt("A", noise)


@pytest.mark.parametrize("run", ["nonsense", "A" * (LONGEST_TEXT + 1)])
@pytest.mark.slow
def test_an_altered_link_is_reported_and_the_page_works(live: LivePage, run: str) -> None:
    live.open(run=run, prompt="abc")
    expect(live.page.get_by_role("alert").first).to_have_text(
        "The run in this link cannot be read: the link is incomplete or was changed. The page starts with no request."
    )
    live.add()
    live.step()


@pytest.mark.slow
def test_a_second_tab_with_the_same_address_gets_an_engine_of_its_own(
    live: LivePage, context: BrowserContext, app_server: AppServer
) -> None:
    live.open(prompt="abcdef")
    live.add()
    live.step(2)
    copy = LivePage(context.new_page(), app_server.url)
    copy.page.goto(link_of(live))
    copy.expect_figure("step", "2")
    expect(copy.button("step")).to_be_enabled()
    copy.settle()
    copy.step()
    live.setting("Prompt").fill("only here")
    live.add()
    copy.expect_figure("step", "3")
    live.expect_figure("step", "2")
    expect(copy.requests).to_have_count(1)
    expect(live.requests).to_have_count(2)


@pytest.mark.slow
def test_an_open_tab_restores_its_run_after_a_server_restart(elsewhere: Page, tmp_path: Path) -> None:
    tiny = {"PAGED_KV_MODEL": "tiny-random"}
    with running_app(ROOT / "app.py", tmp_path / "first.log", tiny) as server:
        port = urlparse(server.url).port
        live = LivePage(elsewhere, server.url).open(block_size=4, num_blocks=40, temperature=1.5, seed=5)
        elsewhere.locator(".st-key-example").get_by_text("A fox", exact=True).click()
        live.settle()
        live.add()
        live.step(3)
        until(lambda: num_steps_in_address(elsewhere) == 3, what="step 3 in the address")
        name, prompt = in_address(elsewhere)["engine"], live.prompt("A")
    engine = Engine(live_config("tiny-random", 4, 40, True, "recompute"))
    engine.add_request(prompt, SamplingParams(temperature=1.5, max_tokens=24, seed=5))
    for _ in range(3):
        engine.step()
    with running_app(ROOT / "app.py", tmp_path / "second.log", tiny, port=port):
        elsewhere.wait_for_url(lambda url: f"engine={name}" not in url, timeout=MODEL_MILLISECONDS)  # it took no click
        live.expect_figure("step", "3")
        live.expect_reply("A", engine.output("A").outputs[0].text)
        until(lambda: num_steps_in_address(elsewhere) == 3, what="step 3 in the address")
    with running_app(ROOT / "app.py", tmp_path / "third.log", tiny, port=port):
        connection = elsewhere.locator("[data-testid=stApp]")
        expect(connection).to_have_attribute("data-test-connection-state", "CONNECTED", timeout=MODEL_MILLISECONDS)
        live.button("step").click()  # on the picture of the server that is no more, or on what comes after it
        engine.step()
        live.expect_figure("step", "4")
        live.expect_reply("A", engine.output("A").outputs[0].text)
