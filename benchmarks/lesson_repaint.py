"""How long a lesson takes to repaint while its slider is dragged: every map that the drag moves, script to paint.

Usage: python -m benchmarks.lesson_repaint [--rounds 10]

Every frame of the lesson's own range, forward and then in a scattered order. The budget of a 60 Hz screen is 16.7 ms.
"""

from __future__ import annotations

import argparse
import os
import shutil
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

from benchmarks.memory_map_repaint import SCRUB, figures_of
from tests.helpers.app_server import ROOT, running_app
from tests.helpers.lessons import LESSONS

SCATTER = 7919
"""A prime: multiples of it reach every frame, far from the one before."""


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--rounds", type=int, default=10)
    rounds = options.parse_args().rounds
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        chromium = playwright.chromium.launch(
            executable_path=os.environ.get("CHROMIUM") or shutil.which("chromium"), args=["--no-sandbox"]
        )
        environment = {"PAGED_KV_MODEL": "tiny-random"}
        with running_app(ROOT / "app.py", Path(folder) / "server.log", environment) as server:
            for case in LESSONS:
                page = chromium.new_page(viewport={"width": 1280, "height": 900})
                page.goto(f"{server.url}/{case.page.url_path}")
                for key in case.pictures():
                    page.locator(f".st-key-{key} svg .heading:visible").first.wait_for(timeout=120_000)
                count = len(case.picture.values)
                forward = list(range(count)) * rounds
                scattered = [(i * SCATTER) % count for i in range(count * rounds)]
                for name, order in (("forward", forward), ("scattered", scattered)):
                    times = page.locator(f".st-key-{case.map_key} .mm").evaluate(SCRUB, order)
                    print(f"{case.page.title:30} {count:4} frames, {name:9} {figures_of(times)}", flush=True)
                page.close()


if __name__ == "__main__":
    main()
