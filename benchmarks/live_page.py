"""How the live page answers in a real browser: a Step click, a run, a long run scrubbed, and what the tab keeps.

Usage: python -m benchmarks.live_page [--model tiny-random] [--clicks 40] [--steps 2000]

A click's time is from the press until the first change of the page shows the new step, and until the map and the
figures both show it; also less the engine's own time for that step, which the trace gives. Frames a second: how often
the map showed another step while the engine ran as fast as it can. A frame's time while scrubbing: from the start of
its animation frame to the end of its paint. Memory: the page's JavaScript heap after a collection, and its DOM nodes.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import tempfile
from itertools import pairwise
from pathlib import Path

from playwright.sync_api import CDPSession, Page, sync_playwright

from benchmarks.memory_map_repaint import SCRUB
from engine import Trace
from engine.trace.events import StepCompleted
from tests.helpers.app_server import ROOT, running_app
from tests.helpers.live_page import LivePage

CLICK = """async (wanted) => {
    const root = [...document.querySelectorAll(".st-key-memory_map *")].find((e) => e.shadowRoot).shadowRoot;
    const inMap = () => root.querySelector(".bar .label").textContent === `Step ${wanted}`;
    const inFigures = () => document.querySelector("[data-figure=step]").textContent === String(wanted);
    const button = document.querySelector(".st-key-step button");
    while (button.disabled) await new Promise(requestAnimationFrame);
    const start = performance.now();
    button.click();
    while (!inMap() && !inFigures()) await new Promise(requestAnimationFrame);
    const first = performance.now() - start;
    while (!(inMap() && inFigures())) await new Promise(requestAnimationFrame);
    return [first, performance.now() - start];
}"""
WATCH = """async (seconds) => {
    const root = [...document.querySelectorAll(".st-key-memory_map *")].find((e) => e.shadowRoot).shadowRoot;
    const label = root.querySelector(".bar .label"), moments = [], end = performance.now() + seconds * 1000;
    for (let last = label.textContent; performance.now() < end;) {
        await new Promise(requestAnimationFrame);
        if (label.textContent !== last) moments.push(performance.now());
        last = label.textContent;
    }
    return moments;
}"""
SECONDS_OF_RUN = 6
NUM_JUMPS = 200


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--model", default="tiny-random")
    options.add_argument("--clicks", type=int, default=40)
    options.add_argument("--steps", type=int, default=2000)
    chosen = options.parse_args()
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        chromium = playwright.chromium.launch(
            executable_path=os.environ.get("CHROMIUM") or shutil.which("chromium"), args=["--no-sandbox"]
        )
        log = Path(folder) / "server.log"
        with running_app(ROOT / "app.py", log, {"PAGED_KV_MODEL": chosen.model}) as server:
            page = chromium.new_page(viewport={"width": 1280, "height": 900})
            live = LivePage(page, server.url)
            _report_clicks(live, chosen.clicks)
            for pace in ("20 steps a second", "As fast as it can"):
                _report_run(live, pace)
            _report_long_run(live, chosen.steps)


def _report_clicks(live: LivePage, clicks: int) -> None:
    live.open(prompt="Once upon a time", num_blocks=64, samples=2, max_tokens=clicks + 10, stop_at_end="false")
    live.add()
    live.step()
    seen = [live.page.evaluate(CLICK, step) for step in range(2, clicks + 2)]
    trace = _trace_of(live)
    own = {event.step: event.elapsed_ms for event in trace if isinstance(event, StepCompleted)}
    for what, times in zip(
        ("to the first changed frame", "to the map and the figures"), zip(*seen, strict=True), strict=True
    ):
        _say(f"Step click {what}", list(times), "ms")
        beyond = [time - own[step] for step, time in enumerate(times, 2)]
        _say(f"Step click {what}, beyond the engine's own time", beyond, "ms")


def _report_run(live: LivePage, pace: str) -> None:
    _open_long(live, pace)
    live.button("run").click()
    moments = live.page.evaluate(WATCH, SECONDS_OF_RUN)
    print(f"Run, {pace.lower()}: the map showed another step {len(moments) / SECONDS_OF_RUN:.1f} times a second")
    _say("Between two pictures", [b - a for a, b in pairwise(moments)], "ms")
    live.button("pause").click()


def _report_long_run(live: LivePage, steps: int) -> None:
    _open_long(live, "As fast as it can")
    cdp = live.page.context.new_cdp_session(live.page)
    live.button("run").click()
    _wait_for_steps(live, steps, cdp)
    for name, order in _orders(live.page).items():
        times = live.page.locator(".st-key-memory_map .mm").evaluate(SCRUB, order)
        _say(f"Scrubbing {len(order)} frames {name}", times, "ms")
        _report_memory(cdp, f"after scrubbing {name}")


def _open_long(live: LivePage, pace: str) -> None:
    """One request that goes on for 2,000 tokens."""
    live.open(
        prompt="Once upon a time", num_blocks=512, block_size=8, max_tokens=2000, pace=pace, stop_at_end="false"
    )  # fmt: skip
    live.add()


def _wait_for_steps(live: LivePage, steps: int, cdp: CDPSession) -> None:
    """Until the run has got there, in four parts, with the memory after each."""
    for part in range(1, 5):
        while (step := int(live.figure("step"))) < steps * part // 4 and live.button("pause").is_enabled():
            live.page.wait_for_timeout(100)
        _report_memory(cdp, f"at step {step}")
    if live.button("pause").is_enabled():
        live.button("pause").click()
    live.settle()


def _orders(page: Page) -> dict[str, list[int]]:
    last = int(page.locator(".st-key-memory_map input.range").get_attribute("max") or 0)
    return {
        "forward": list(range(last + 1)),
        "backward": list(range(last, -1, -1)),
        "anywhere": [(i * 7919) % (last + 1) for i in range(NUM_JUMPS)],
    }


def _report_memory(cdp: CDPSession, when: str) -> None:
    cdp.send("HeapProfiler.collectGarbage")
    cdp.send("Performance.enable")
    metrics = {m["name"]: m["value"] for m in cdp.send("Performance.getMetrics")["metrics"]}
    print(f"Memory {when:28} {metrics['JSHeapUsedSize'] / 1e6:6.1f} MB heap, {metrics['Nodes']:6.0f} nodes")


def _trace_of(live: LivePage) -> Trace:
    live.tool("Download")
    with live.page.expect_download() as download:
        live.button("live_json").click()
    return Trace.from_json(Path(download.value.path()).read_text("utf-8"))


def _say(what: str, times: list[float], unit: str) -> None:
    p95 = statistics.quantiles(times, n=20)[-1]
    print(f"{what:42} p50 {statistics.median(times):6.1f} {unit}, p95 {p95:6.1f} {unit}, most {max(times):6.1f} {unit}")


if __name__ == "__main__":
    main()
