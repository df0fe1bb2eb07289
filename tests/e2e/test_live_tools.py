"""Looking into the running engine: a slot down to its bytes, the kernel block by block, on the embedded model."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from engine import Engine, SamplingParams
from engine.inspect.kernels_eye import KernelView, kernels_eye
from engine.inspect.sharing_history import sharing_history, totals_of
from engine.inspect.slot_microscope import look_at_slot, place_in_words
from tests.helpers.app_server import AppServer
from tests.helpers.live_page import LivePage
from tests.helpers.map_page import cells_of
from tests.helpers.page_watch import PageWatch
from tests.helpers.waiting import until_equal
from views.browser.text_safe import visible_piece
from views.live.config import live_config
from views.live.sharing_history import NAMES

PROMPT = "The quick brown fox jumps over"
pytestmark = pytest.mark.embedded


@pytest.fixture(scope="module")
def engine() -> Engine:
    """What the page does by hand in these tests: two samples, four steps."""
    engine = Engine(live_config("smollm2-135m-instruct", 4, 20, True, "recompute"))
    engine.add_request(PROMPT, SamplingParams(temperature=0.7, max_tokens=24, n=2, seed=7))
    for _ in range(4):
        engine.step()
    return engine


@pytest.fixture(scope="module")
def live(browser: Browser, embedded_server: AppServer) -> Iterator[LivePage]:
    """One tab for all: looking changes nothing."""
    context = browser.new_context(viewport={"width": 1280, "height": 900}, reduced_motion="reduce")
    page = context.new_page()
    watch = PageWatch(page)
    live = LivePage(page, embedded_server.url).open(block_size=4, num_blocks=20, samples=2, seed=7)
    live.setting("Prompt").fill(PROMPT)
    live.add()
    live.step(4)
    yield live
    watch.check()
    context.close()


@pytest.mark.slow
def test_a_clicked_slot_is_explained_down_to_its_bytes_and_numbers(live: LivePage, engine: Engine) -> None:
    live.tool("Block tables")
    slot = live.page.locator(".st-key-memory_map rect[data-kind='slot'][data-block='0'][data-off='2']")
    slot.click()
    live.expect_figure("view.slot", "2")
    live.set_number("Layer", 11)
    live.set_number("KV head", 1)
    view = look_at_slot(engine, 2, 11, 1)
    assert (view.ref_cnt, view.request_ids) == (2, ("A",))
    assert view.content is not None
    live.expect_figure("view.place.byte_offset", str(view.place.byte_offset))
    for key, value in (("block_id", "0"), ("offset", "2"), ("ref_cnt", "2"), ("place.dtype", view.place.dtype)):
        live.expect_figure(f"view.{key}", value)
    expect(live.page.locator("[data-piece]")).to_have_text(visible_piece(view.content.piece))
    addresses = live.page.locator(".pv-lookup")
    expect(addresses).to_have_count(2)
    assert len(view.readers) == 2
    for address in addresses.all():
        expect(address).to_contain_text("2 // 4 = 0")
        expect(address).to_contain_text("block_table[0] = 0")
    words = live.page.locator("[data-testid=stMain]")
    expect(words).to_contain_text(place_in_words(view.place))
    expect(words).to_contain_text(str(view.place.strides))
    rows = live.unfold_table("Keys and values of slot 2, layer 11, KV head 1, after step 4")
    until_equal(lambda: numbers(rows, 1), pytest.approx(view.key, abs=1e-6))
    until_equal(lambda: numbers(rows, 2), pytest.approx(view.value, abs=1e-6))
    assert max(map(abs, view.key)) > 0.1


def numbers(rows: Locator, column: int) -> list[float]:
    return [float(cells[column]) for cells in cells_of(rows, "td")]


def test_an_unwritten_slot_is_reported(live: LivePage) -> None:
    live.tool("Slot microscope")
    live.set_number("Slot", 79)
    live.expect_figure("view.block_id", "19")
    expect(live.page.get_by_text("Nothing has been written here yet")).to_be_visible()


@pytest.mark.slow
def test_the_kernel_is_followed_block_by_block_to_its_own_output(live: LivePage, engine: Engine) -> None:
    live.tool("Kernel's eye")
    chosen = live.page.locator("[data-testid=stMain]").get_by_label("Sequence", exact=True)
    expect(chosen).not_to_have_value("")
    seq_id = chosen.input_value()
    position = engine.snapshot().sequences[seq_id].num_computed_tokens - 1
    for label, value in (("Query token", position), ("Layer", 4), ("Head", 5)):
        live.set_number(label, value)
    view = kernels_eye(engine, seq_id, position, 4, 5)
    assert len(view.visits) == 3
    assert view.agrees
    for number in range(1, len(view.visits) + 1):
        assert_visit(live, view, number)
        live.move_slider("beat", 1)
    division = live.page.locator("[data-part='divide'] td").first
    expect(division).to_have_text(f"log-sum-exp of the scores: {view.log_sum_exp:.6f}")
    notice = live.page.get_by_text("Computed twice for the same query")
    expect(notice).to_contain_text(f"differ by at most {view.largest_difference:.2g}")
    rows = live.unfold_table(f"What token {position} of {seq_id} reads: weight of each physical block")
    until_equal(lambda: numbers(rows, 1), [visit.block_id for visit in view.visits])
    until_equal(lambda: numbers(rows, 5), pytest.approx([v.weight for v in view.visits], abs=1e-6))
    assert sum(numbers(rows, 5)) == pytest.approx(1, abs=1e-5)


def assert_visit(live: LivePage, view: KernelView, number: int) -> None:
    """Scores, running figures and the line of source, at one block."""
    visit = view.visits[number - 1]
    expect(live.page.locator("[data-visited-block]")).to_have_attribute("data-visited-block", str(visit.block_id))
    live.expect_figure("visit.total", f"{visit.total:.4f}")
    live.expect_figure("visit.maximum", f"{visit.maximum:.4f}")
    live.expect_figure("visit.weight", f"{visit.weight:.4f}")
    scores = live.page.locator("[data-part='score'] td").first
    shown = pytest.approx([token.score for token in visit.tokens], abs=1e-4)
    until_equal(lambda: [float(score) for score in scores.inner_text().split()], shown)
    for line in view.source[:-1]:
        source = live.page.locator(f"[data-part='{line.part}'] td").last
        expect(source).to_contain_text(line.text)
        expect(source).to_contain_text(f"{line.file}, line {line.number}")


def shown_account(live: LivePage, step: int) -> list[list[str]]:
    """What, who, block, count: the rows of one step."""
    return [cells[:4] for cells in cells_of(live.page.locator(f"[data-sharing='{step}'] tbody tr"))]


def told_account(engine: Engine, step: int) -> list[list[str]]:
    return [
        [
            NAMES[entry.kind],
            entry.seq_id,
            "" if entry.block_id is None else str(entry.block_id),
            "" if entry.ref_cnt_before is None else f"{entry.ref_cnt_before} → {entry.ref_cnt_after}",
        ]
        for entry in sharing_history(engine.trace)
        if entry.step == step
    ]


def test_ref_cnt_falls_from_two_to_one_on_the_copy(live: LivePage, engine: Engine) -> None:
    live.tool("Forks and copies")
    live.expect_figure("totals.num_to_one_reference", "1")
    until_equal(lambda: shown_account(live, 2), told_account(engine, 2))
    [copy] = [entry for entry in sharing_history(engine.trace) if entry.kind == "copy"]
    assert (copy.step, copy.ref_cnt_before, copy.ref_cnt_after) == (2, 2, 1)
    slow = live.page.locator(".st-key-slow_map")
    shared = slow.locator(f".blk[data-block='{copy.block_id}']")
    expect(shared).to_have_attribute("aria-label", re.compile("ref_cnt 2"))
    while "is about to write into shared block" not in slow.locator(".say").inner_text():
        before = slow.locator("input.range").input_value()
        slow.get_by_role("button", name="Step forward").click()
        expect(slow.locator("input.range")).not_to_have_value(before)
    expect(shared).to_have_attribute("aria-label", re.compile("ref_cnt 1"))


@pytest.mark.slow
def test_pruned_beams_free_their_blocks_for_others(page: Page, embedded_server: AppServer) -> None:
    live = LivePage(page, embedded_server.url).open(block_size=2, num_blocks=60, beams=3, max_tokens=8)
    live.setting("Prompt").fill("Once upon a time")
    live.add()
    live.step(6)
    live.tool("Forks and copies")
    engine = Engine(live_config("smollm2-135m-instruct", 2, 60, True, "recompute"))
    engine.add_request("Once upon a time", SamplingParams(temperature=0.7, max_tokens=8, beam_width=3, seed=0))
    for _ in range(6):
        engine.step()
    account = sharing_history(engine.trace)
    totals = totals_of(account)
    assert totals.num_pruned and totals.num_reused
    for name in ("num_forks", "num_copies", "num_pruned", "num_reused"):
        live.expect_figure(f"totals.{name}", str(getattr(totals, name)))
    last = max(entry.step for entry in account if entry.kind in ("fork", "copy", "prune"))
    until_equal(lambda: shown_account(live, last), told_account(engine, last))
