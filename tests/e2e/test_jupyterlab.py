"""`show(trace)` in a real JupyterLab: drawn and played, saved, and opened again where the notebook is not trusted."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext, Locator, Page, expect

from engine import Engine, EngineConfig, SamplingParams
from tests.helpers.jupyter import running_jupyterlab
from tests.helpers.waiting import PATIENCE, until
from views.memory_map.static_picture import one_line

pytestmark = [pytest.mark.slow, pytest.mark.every_case]
RUN = """engine = Engine(EngineConfig(model="tiny-random", block_size=4, num_blocks=32))
params = SamplingParams(max_tokens=4, ignore_eos=True)
outputs = engine.generate(["The capital of France is", "The red fox"], params)"""
CELLS = (
    f"from engine import Engine, EngineConfig, SamplingParams\nfrom views.memory_map.notebook import show\n{RUN}",
    "show(engine.trace)",
    "print(show(engine.trace))",
    "show(engine.trace, height=400)",
)


@pytest.fixture(scope="module")
def line() -> str:
    """What the same run says of itself in this process."""
    names = {"Engine": Engine, "EngineConfig": EngineConfig, "SamplingParams": SamplingParams}
    exec(RUN, names)
    return one_line(names["engine"].trace)  # type: ignore[attr-defined]


@pytest.fixture
def notebook(tmp_path: Path) -> Path:
    cells: list[dict[str, object]] = [
        {"cell_type": "code", "id": f"cell{i}", "metadata": {}, "execution_count": None, "outputs": [], "source": text}
        for i, text in enumerate(CELLS)
    ]
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    file = tmp_path / "notebooks" / "kv.ipynb"
    file.parent.mkdir()
    file.write_text(json.dumps({"cells": cells, "metadata": kernel, "nbformat": 4, "nbformat_minor": 5}), "utf-8")
    return file


@pytest.fixture
def tab(context: BrowserContext) -> Iterator[Page]:
    """One tall enough for all cells: JupyterLab draws those in view. Nothing may come from another machine."""
    page = context.new_page()
    page.set_viewport_size({"width": 1280, "height": 2000})
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    yield page
    assert [url for url in asked if not url.startswith(("http://127.0.0.1:", "data:", "blob:"))] == []


def opened(tab: Page, address: str, token: str, notebook: Path) -> None:
    tab.goto(f"{address}/lab/tree/{notebook.name}?token={token}")
    expect(tab.locator(".jp-Notebook .jp-CodeCell")).to_have_count(len(CELLS), timeout=PATIENCE * 1000)


def output_of(tab: Page, number: int) -> Locator:
    return tab.locator(".jp-Notebook .jp-CodeCell").nth(number).locator(".jp-OutputArea")


def test_a_trace_is_drawn_and_plays_and_an_untrusted_notebook_has_a_line_and_a_picture(
    tab: Page, notebook: Path, line: str, tmp_path: Path
) -> None:
    with running_jupyterlab(notebook.parent, made(tmp_path / "author")) as (address, token):
        opened(tab, address, token, notebook)
        tab.get_by_role("menuitem", name="Run", exact=True).click()
        tab.get_by_role("menuitem", name="Run All Cells", exact=True).click()
        expect(output_of(tab, 0)).to_contain_text(re.compile(r"Processed prompts: 100%\|█+\| 2/2 \[.*tokens=8\]"))
        expect(output_of(tab, 2)).to_have_text(line)

        frame = output_of(tab, 1).frame_locator("iframe[title='Memory map']")
        expect(frame.locator(".mm svg.picture[viewBox]")).to_be_visible()
        bottom = frame.locator(".mm .below").evaluate("below => below.getBoundingClientRect().bottom - innerHeight")
        assert bottom <= 0, "the whole picture is in the frame"
        label = frame.locator(".mm .bar .label")
        last = str(label.text_content())
        frame.get_by_role("button", name="First frame").click()
        expect(label).not_to_have_text(last)
        frame.get_by_role("button", name="Play").click()
        expect(label).to_have_text(last)
        for number in (1, 3):
            expect(output_of(tab, number).locator(".paged-kv-static")).to_be_hidden()
        tab.get_by_role("menuitem", name="File", exact=True).click()
        tab.get_by_role("menuitem", name=re.compile(r"^Save Notebook\s*(Ctrl.*)?$")).click()
        until(lambda: is_saved(notebook), what="the notebook is saved")

    with running_jupyterlab(notebook.parent, made(tmp_path / "reader")) as (address, token):
        opened(tab, address, token, notebook)
        for number in (1, 3):
            expect_line_and_picture(output_of(tab, number), line)
        expect(output_of(tab, 2)).to_have_text(line)
        for number in (0, 1):  # whoever runs a cell trusts its output
            tab.locator(".jp-Notebook .jp-CodeCell").nth(number).locator(".jp-InputArea-editor").click()
            tab.keyboard.press("Shift+Enter")
        again = output_of(tab, 1).frame_locator("iframe[title='Memory map']")
        expect(again.locator(".mm svg.picture[viewBox]")).to_be_visible(timeout=PATIENCE * 1000)
        expect(output_of(tab, 1).locator(".paged-kv-static")).to_be_hidden()
        expect_line_and_picture(output_of(tab, 3), line)


def is_saved(notebook: Path) -> bool:
    """Whether the file holds an output of every cell; it is written while it is read here."""
    try:
        return all(cell["outputs"] for cell in json.loads(notebook.read_text("utf-8"))["cells"])
    except json.JSONDecodeError:
        return False


def expect_line_and_picture(output: Locator, line: str) -> None:
    """The output of a cell that is not trusted."""
    expect(output.locator("iframe[title='Memory map']")).to_have_count(0)
    expect(output.locator(".paged-kv-static p")).to_have_text(line)
    picture = output.locator(".paged-kv-static img")
    expect(picture).to_be_visible()
    expect(picture).to_have_attribute("alt", line)
    until(lambda: picture.evaluate("image => image.complete && image.naturalWidth") > 0, what="the picture is drawn")


def made(folder: Path) -> Path:
    folder.mkdir()
    return folder
