"""The live page on the tiny model: every button, two tabs, the address, hostile prompts."""

from __future__ import annotations

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from course.pages import HOME, LIVE_ENGINE
from tests.helpers.app_server import AppServer
from tests.helpers.live_page import LivePage
from tests.helpers.navigation import navigation_link
from tests.helpers.waiting import until, until_equal

HOSTILE = (
    "<img src=x onerror=alert(1)><script>alert(2)</script> $5 and $6 **b** :red[x] `t` ![i](http://a.b/c.png)",
    "  two  spaces, a\ttab,\n\na blank line, &amp; 👩‍👩‍👧‍👦 日本語 é <|im_start|>",
)


@pytest.fixture
def live(page: Page, app_server: AppServer) -> LivePage:
    return LivePage(page, app_server.url)


@pytest.mark.slow
def test_before_the_first_request_only_adding_and_resetting_are_possible(live: LivePage) -> None:
    live.open()
    for key in ("add", "reset"):
        expect(live.button(key)).to_be_enabled()
    for key in ("step", "run", "pause"):
        expect(live.button(key)).to_be_disabled()
    live.expect_figure("used", "0")
    live.expect_figure("free", "32")


@pytest.mark.slow
def test_a_prepared_example_fills_the_prompt_box_and_the_address(live: LivePage) -> None:
    live.open()
    live.page.locator(".st-key-example").get_by_text("A fox", exact=True).click()
    expect(live.setting("Prompt")).to_have_value("The quick brown fox")
    live.page.wait_for_url("**prompt=The+quick+brown+fox*")


def test_a_step_computes_the_prompt_and_samples_one_token(live: LivePage) -> None:
    live.open(prompt="abcdef", block_size=4, num_blocks=10)
    live.add()
    live.step()
    live.expect_table("A", [["0", "0", "0 to 3", "4 of 4", "1"], ["1", "1", "4 to 7", "2 of 4", "1"]])
    live.expect_pieces("A", [["a", "b", "c", "d"], ["e", "f"]])
    expect(live.page.locator("[data-block-table=A] caption")).to_contain_text("7 tokens known, 6 written")
    live.expect_figure("written", "6 of 8")


@pytest.mark.slow
def test_run_continues_until_stop(live: LivePage) -> None:
    live.open(prompt="abcdef", max_tokens=300, num_blocks=100, pace="5 steps a second", stop_at_end="false")
    live.add()
    live.button("run").click()
    live.wait_for_step(3)
    expect(live.button("step")).to_be_disabled()
    live.button("pause").click()
    expect(live.button("pause")).to_be_disabled()
    expect(live.button("step")).to_be_enabled()
    live.page.wait_for_timeout(500)
    stopped_at = live.figure("step")
    live.page.wait_for_timeout(800)
    assert live.figure("step") == stopped_at
    live.step()
    live.expect_figure("step", str(int(stopped_at) + 1))


@pytest.mark.slow
def test_a_finished_run_enables_the_buttons_and_frees_the_blocks(live: LivePage) -> None:
    live.open(prompt="abcdef", max_tokens=6, pace="As fast as it can")
    live.add()
    live.button("run").click()
    live.expect_status("A", "finished")
    expect(live.button("pause")).to_be_disabled()
    expect(live.button("run")).to_be_disabled()
    live.expect_figure("used", "0")
    until_equal(lambda: int(live.figure("cached")) + int(live.figure("free")), 32)
    expect(live.page.locator("[data-block-table=A] caption")).to_contain_text("gave its blocks back")


@pytest.mark.slow
def test_reset_drops_the_requests_and_takes_the_new_pool(live: LivePage) -> None:
    live.open(prompt="abcdef")
    live.add()
    live.step()
    live.set("Blocks", 9)
    expect(live.page.get_by_text("apply after Reset")).to_be_visible()
    until_equal(lambda: int(live.figure("used")) + int(live.figure("free")), 32)
    live.button("reset").click()
    expect(live.requests).to_have_count(0)
    live.expect_figure("free", "9")
    live.expect_figure("step", "0")


@pytest.mark.slow
def test_samples_share_the_prompt_and_ref_cnt_shows_it(live: LivePage) -> None:
    live.open(prompt="abcdefgh", block_size=4, samples=3, temperature=1.5)
    live.add()
    live.step()
    until_equal(lambda: [row[4] for row in live.table("A#2")], ["3", "3"])
    live.expect_figure("copies_avoided", "4")
    expect(live.page.locator("[data-block-table]")).to_have_count(3)


def test_ten_clicks_at_once_are_ten_steps_or_ignored_never_skipped(live: LivePage) -> None:
    live.open(prompt="abcdef", max_tokens=100, num_blocks=100)
    live.add()
    live.step()
    live.page.evaluate(
        """async () => {
            for (let i = 0; i < 10; i++) {
                document.querySelector('.st-key-step button').click();
                await new Promise(done => setTimeout(done, 30));
            }
        }"""
    )
    live.page.wait_for_timeout(1500)
    live.settle()
    caption = live.page.locator("[data-block-table=A] caption")
    until(lambda: known_and_written(int(live.figure("step"))) in caption.inner_text(), what="a table of the step shown")
    assert 2 <= int(live.figure("step")) <= 11


def known_and_written(step: int) -> str:
    """Of a prompt of 6 tokens."""
    return f"{6 + step} tokens known, {5 + step} written"


@pytest.mark.slow
def test_two_tabs_have_engines_of_their_own(live: LivePage, context: BrowserContext, app_server: AppServer) -> None:
    live.open(prompt="first tab")
    live.add()
    live.step()
    other = LivePage(context.new_page(), app_server.url).open(prompt="second", num_blocks=9)
    other.expect_figure("free", "9")
    expect(other.requests).to_have_count(0)
    other.add()
    other.step(2)
    live.step()
    for tab, prompt in ((live, "first tab"), (other, "second")):
        tab.expect_figure("step", "2")
        tab.expect_prompt("A", prompt)


@pytest.mark.parametrize("prompt", HOSTILE)
def test_a_prompt_is_shown_verbatim_and_never_interpreted(live: LivePage, prompt: str) -> None:
    live.open(num_blocks=120)
    live.setting("Prompt").fill(prompt)
    live.add()
    live.step()
    live.expect_prompt("A", prompt)
    expect(live.page.locator("img[src='x'], [data-testid=stMain] script")).to_have_count(0)


@pytest.mark.slow
def test_an_empty_prompt_is_refused_with_a_sentence_and_the_others_go_on(live: LivePage) -> None:
    live.open(prompt="abc")
    live.add()
    live.setting("Prompt").fill("")
    live.button("add").click()
    expect(live.page.get_by_role("alert").first).to_have_text("The prompt is empty: at least 1 token is needed.")
    live.step()
    live.expect_status("A", "running")


@pytest.mark.slow
def test_a_reload_restores_the_settings(live: LivePage) -> None:
    live.open()
    live.setting("Prompt").fill("kept & safe?")
    live.set("Block size", 7)
    expect(live.setting("Block size")).to_have_value("7")
    live.page.wait_for_url(lambda url: "block_size=7" in url and "prompt=kept" in url)
    live.page.reload()
    expect(live.setting("Block size")).to_have_value("7")
    expect(live.setting("Prompt")).to_have_value("kept & safe?")


@pytest.mark.slow
def test_the_settings_survive_a_visit_to_another_page(live: LivePage) -> None:
    live.open(block_size=7, prompt="kept")
    live.add()
    live.step()
    navigation_link(live.page, HOME).click()
    expect(live.page.get_by_role("heading", name="See PagedAttention work")).to_be_visible()
    navigation_link(live.page, LIVE_ENGINE).click()
    expect(live.button("add")).to_be_enabled()
    expect(live.setting("Block size")).to_have_value("7")
    live.expect_figure("step", "1")


@pytest.mark.parametrize(
    ("raw", "value", "sentence"),
    [
        ("1e9", "256", "Block size must be a whole number from 1 to 256: '1e9' was changed to 256."),
        ("0", "1", "Block size must be a whole number from 1 to 256: '0' was changed to 1."),
        ("-1", "1", "Block size must be a whole number from 1 to 256: '-1' was changed to 1."),
        ("abc", "4", "Block size: 'abc' in the address is not a number, so it was set to 4."),
        ("inf", "4", "Block size: 'inf' in the address is not a number, so it was set to 4."),
        ("NaN", "4", "Block size: 'NaN' in the address is not a number, so it was set to 4."),
    ],
)
def test_a_bad_value_in_the_url_is_clamped_with_a_note(live: LivePage, raw: str, value: str, sentence: str) -> None:
    live.open(block_size=raw)
    expect(live.setting("Block size")).to_have_value(value)
    expect(live.page.get_by_text(sentence)).to_be_visible()
    if value != "4":
        live.page.wait_for_url(f"**block_size={value}*")
