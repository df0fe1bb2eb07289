"""How long the memory map takes to repaint a frame in the browser, script to paint, while a run is scrubbed.

Usage: python -m benchmarks.memory_map_repaint [--frames 2000] [--blocks 64 512 4096]

The run is the engine's own on scripted words. A frame's time is from the start of its animation frame to the end
of its paint, the slider's thumb being held. The budget of a 60 Hz screen is 16.7 ms.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import tempfile
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

from tests.helpers.app_server import ROOT, running_app

APP = ROOT / "tests" / "e2e" / "apps" / "memory_map_app.py"
NUM_JUMPS = 200
SCRUB = """async (map, order) => {
    const root = map.getRootNode(), range = root.querySelector(".range"), times = [];
    const frame = (index) => new Promise((done) => {
        let start;
        requestAnimationFrame(() => { start = performance.now(); });
        range.value = index;
        range.dispatchEvent(new Event("input"));
        requestAnimationFrame(() => {
            const channel = new MessageChannel();
            channel.port1.onmessage = () => done(performance.now() - start);
            channel.port2.postMessage(0);
        });
    });
    const thumb = (kind) => range.dispatchEvent(new PointerEvent(kind, { bubbles: true, composed: true }));
    thumb("pointerdown");
    for (const index of order) times.push(await frame(index));
    thumb("pointerup");
    return times;
}"""


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--frames", type=int, default=2000)
    options.add_argument("--blocks", type=int, nargs="+", default=[64, 512, 4096])
    chosen = options.parse_args()
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        chromium = playwright.chromium.launch(
            executable_path=os.environ.get("CHROMIUM") or shutil.which("chromium"), args=["--no-sandbox"]
        )
        with running_app(APP, Path(folder) / "server.log", {"PYTHONPATH": str(ROOT)}) as server:
            for num_blocks in chosen.blocks:
                page = chromium.new_page(viewport={"width": 1280, "height": 900})
                page.goto(f"{server.url}/?scene=long&blocks={num_blocks}&frames={chosen.frames}&position=0")
                page.locator(".st-key-map .blk").first.wait_for(timeout=120_000)
                _report(page, num_blocks)
                page.close()


def _report(page: Page, num_blocks: int) -> None:
    last = int(page.locator(".st-key-map input.range").get_attribute("max") or 0)
    orders = {
        "forward": list(range(last + 1)),
        "backward": list(range(last, -1, -1)),
        "anywhere": [(i * 7919) % (last + 1) for i in range(NUM_JUMPS)],
    }
    for name, order in orders.items():
        times = page.locator(".st-key-map .mm").evaluate(SCRUB, order)
        print(f"{num_blocks:5} blocks, {last + 1:5} frames, {name:9} {figures_of(times)}")


def figures_of(times: list[float]) -> str:
    """Median and 95th percentile of milliseconds."""
    return f"p50 {statistics.median(times):6.1f} ms, p95 {statistics.quantiles(times, n=20)[-1]:6.1f} ms"


if __name__ == "__main__":
    main()
