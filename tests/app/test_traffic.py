"""The page that counts a file of traffic, without a browser."""

from __future__ import annotations

from tests.app.conftest import OpenPage
from tests.app.test_decode_log import html_of
from tests.traffic.test_formats import MOONCAKE


def test_the_example_and_hash_ids(open_page: OpenPage) -> None:
    app = open_page("pages/traffic.py")
    assert not app.exception
    html = html_of(app)
    assert 'data-figure="requests">32<' in html
    assert "engine, one request at a time" in html and "engine, 8 requests at a time" in html
    app.text_area(key="traffic_text").set_value(f"{MOONCAKE}oops").run()
    assert not app.exception
    html = html_of(app)
    assert 'data-figure="best">42.6 %<' in html
    assert "Line 5 is skipped: it is not JSON." in html
    assert "3 requests begin with the same 1,024 tokens (2 blocks)." in [text.value for text in app.text]


def test_what_holds_no_request_says_so(open_page: OpenPage) -> None:
    app = open_page("pages/traffic.py")
    app.text_area(key="traffic_text").set_value("<b>hello</b>").run()
    assert not app.exception
    assert "There is no request here to count." in html_of(app)


def test_options_of_vllm(open_page: OpenPage) -> None:
    app = open_page("pages/traffic.py")
    app.button(key="example_traffic_text_2").click().run()
    assert 'data-figure="best">76.0 %<' in html_of(app)
