"""Whether a page's pictures are in view, whole, with their slider, without scrolling."""

from __future__ import annotations

from typing import Any

from playwright.sync_api import Page

SIZES = {"laptop": (1280, 800), "projector": (1024, 768), "phone": (375, 812)}
BESIDE = 1024
"""From this width on the controls stand beside the picture."""
LEAST_LABEL = 11
PLACES = """mm => {
    const box = e => e.getBoundingClientRect();
    const labels = [...mm.querySelectorAll(".grid :is(.letter, .name, .cell-id)")].filter(e => e.textContent);
    const sizes = labels.map(e => parseFloat(getComputedStyle(e).fontSize));
    const captions = box(mm.querySelector(".captions"));
    return {
        top: box(mm.querySelector(".above")).top, bottom: box(mm.querySelector(".below")).bottom,
        sentence: captions.height ? captions.bottom : 0,
        lines: box(mm.querySelector(".bar")).height / box(mm.querySelector(".play")).height,
        slider: box(mm.querySelector(".range")).bottom, width: box(mm.querySelector("svg.picture")).width,
        smallest: Math.min(Infinity, ...sizes),
    };
}"""


def complaints(tab: Page, maps: list[str]) -> list[str]:
    """What is wrong with the pictures in view; the first has the slider. On a phone a second one comes under it."""
    found = []
    width, height = width_of(tab), tab.evaluate("window.innerHeight")
    for key in maps if width >= BESIDE else maps[:1]:
        at = places(tab, key)
        has_sentence = width >= BESIDE and key == maps[0]  # a second picture leaves its own no room on a projector
        bottom = max(at["bottom"], at["sentence"]) if has_sentence else at["bottom"]
        if at["top"] < 0 or bottom > height:
            found.append(f"{key} goes from {at['top']:.0f} to {bottom:.0f}")
        if at["width"] < width * (0.5 if width >= BESIDE else 0.9):
            found.append(f"{key} is {at['width']:.0f} wide")
        if at["smallest"] is not None and at["smallest"] < LEAST_LABEL:
            found.append(f"{key} has labels of {at['smallest']} pixels")
    slider = places(tab, maps[0])["slider"]
    if width >= BESIDE and places(tab, maps[0])["lines"] >= 2:
        found.append("the bar of the player takes two lines")
    return found if 0 < slider <= height else [*found, f"the slider is at {slider:.0f}"]


def places(tab: Page, key: str) -> dict[str, Any]:
    found: dict[str, Any] = tab.locator(f".st-key-{key} .mm").evaluate(PLACES)
    return found


def width_of(tab: Page) -> int:
    return int(tab.evaluate("window.innerWidth"))


def scrolled(tab: Page) -> float:
    return float(tab.locator("[data-testid=stMain]").evaluate("main => main.scrollTop"))
