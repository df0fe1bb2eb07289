"""Home: it opens on the race, leads to every page, its links keep to the live page's limits, and it says what runs."""

from __future__ import annotations

import re
from base64 import b64decode
from typing import Any
from urllib.parse import parse_qsl

from course.pages import COURSE, LESSONS
from course.race.experiment import race
from engine import Engine
from engine.baselines.arrivals import ALPACA, draw_arrivals
from tests.app.conftest import OpenPage
from tests.helpers.app_html import all_html
from views.live.recipe import Recipe
from views.live.settings import BLOCK_SIZE, MAX_TOKENS, NUM_BLOCKS, SAMPLES


def links(app: Any) -> list[Any]:
    return [element.proto for element in app.get("page_link")]


def test_home_links_to_every_page(open_page: OpenPage) -> None:
    app = open_page("pages/home.py")
    assert not app.exception
    assert {page.url_path for page in COURSE if page.url_path} == {link.page for link in links(app)}


def test_suggested_links_hold_settings_that_the_live_page_accepts(open_page: OpenPage) -> None:
    limits = {setting.key: setting for setting in (BLOCK_SIZE, NUM_BLOCKS, SAMPLES, MAX_TOKENS)}
    scenes = [dict(parse_qsl(link.query_string)) for link in links(open_page("pages/home.py")) if link.query_string]
    assert len(scenes) == 3
    for scene in scenes[:2]:
        assert scene.pop("prompt")
        assert all(limits[key].low <= int(value) <= limits[key].high for key, value in scene.items())


def test_the_suggested_pair_of_prompts_makes_one_request_wait(open_page: OpenPage) -> None:
    [text] = [
        scene["run"]
        for link in links(open_page("pages/home.py"))
        if "run" in (scene := dict(parse_qsl(link.query_string)))
    ]
    recipe = Recipe.from_text(text)
    assert recipe.num_steps == 0
    engine = Engine(recipe.config)
    for command in recipe.commands:
        command.execute(engine)
    statuses = []
    while engine.has_unfinished_requests():
        engine.step()
        statuses.append(engine.snapshot().requests["B"].status)
    assert statuses.count("preempted") >= 5, "long enough to be seen"
    assert statuses[-1] == "finished"


def test_home_shows_the_recorded_race_and_links_to_the_first_lesson(open_page: OpenPage) -> None:
    app = open_page("pages/home.py")
    arrivals = draw_arrivals(ALPACA.scaled(0.25), 40, requests_per_step=1.5, max_model_len=64, seed=0)
    lanes = {lane.name: lane for lane in race(arrivals, 256, 4, 64)}
    contiguous, paged = lanes["Max"], lanes["Paged"]
    assert (contiguous.most_running, paged.most_running) == (4, 15)
    assert any("**4** run at once" in text.value and "**15** run at once" in text.value for text in app.markdown)
    step = paged.num_running.index(15)
    pictures = dict(zip(("moving 4", "still 4", "moving 15", "still 15"), svgs(all_html(app)), strict=True))
    for lane in (contiguous, paged):
        moving, still = pictures[f"moving {lane.most_running}"], pictures[f"still {lane.most_running}"]
        counts = re.findall(r'<text class="most"[^>]*>(\d+)<', moving)
        assert set(counts) == {str(max(lane.num_running[: so_far + 1])) for so_far in range(step + 1)}
        assert f"now {lane.num_running[step]} running, {lane.num_waiting[step]} waiting" in still
        assert re.findall(r'<text class="most"[^>]*>(\d+)<', still) == [str(lane.most_running)]
        assert "animation:" in moving and 'class="part' not in still
    state = paged.trace.at(step)
    in_use = sorted(sequence.request_id for sequence in state.sequences.values() for _block in sequence.block_table)
    assert sorted(re.findall(r'class="label"[^>]*>(r\d+)<', pictures["still 15"])) == in_use
    assert links(app)[0].page == LESSONS[0].url_path


def svgs(html: str) -> list[str]:
    return [b64decode(data).decode() for data in re.findall(r'src="data:image/svg\+xml;base64,([^"]+)"', html)]


def test_home_names_the_model_and_the_backend(open_page: OpenPage) -> None:
    assert "tiny-random in float32 on cpu. Attention backend: " in all_html(open_page("pages/home.py"))
