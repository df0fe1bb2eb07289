"""Home: it opens, it leads to every page, its links keep to the live page's limits, and it says what runs."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qsl

from engine.scenes.block_table import block_table
from engine.usage import block_table_of
from tests.app.conftest import OpenPage
from tests.helpers.app_html import all_html
from tests.helpers.lessons import shown_map
from tests.helpers.replay_frames import FrameReader, picture_of
from views.course import COURSE, WHAT_IS_CACHED
from views.live_settings import BLOCK_SIZE, MAX_TOKENS, NUM_BLOCKS, SAMPLES


def links(app: Any) -> list[Any]:
    return [element.proto for element in app.get("page_link")]


def test_home_leads_to_every_page_of_the_course(open_page: OpenPage) -> None:
    app = open_page("pages/home.py")
    assert not app.exception
    assert {page.url_path for page in COURSE if page.url_path} == {link.page for link in links(app)}


def test_what_to_try_first_carries_settings_that_the_live_page_takes_as_they_are(open_page: OpenPage) -> None:
    limits = {setting.key: setting for setting in (BLOCK_SIZE, NUM_BLOCKS, SAMPLES, MAX_TOKENS)}
    scenes = [dict(parse_qsl(link.query_string)) for link in links(open_page("pages/home.py")) if link.query_string]
    assert len(scenes) == 3
    for scene in scenes:
        assert scene.pop("prompt")
        assert all(limits[key].low <= int(value) <= limits[key].high for key, value in scene.items())


def test_home_opens_with_three_requests_in_their_blocks_and_leads_to_the_first_lesson(open_page: OpenPage) -> None:
    app = open_page("pages/home.py")
    payload, position = shown_map(app)
    assert position is None, "at the end, where Play starts over"
    reader = FrameReader()
    for frame in payload["frames"]:
        reader.apply(frame)
    scene = block_table()
    assert reader.picture() == picture_of(scene.at(scene.values[-1]))
    assert [entry.block_id for entry in block_table_of(scene.at(scene.values[-1]), "A")] == [6, 1, 8]
    assert links(app)[0].page == WHAT_IS_CACHED.url_path


def test_home_says_what_runs(open_page: OpenPage) -> None:
    assert "tiny-random in float32 on cpu. Attention backend: " in all_html(open_page("pages/home.py"))
