"""The first page below a base path, and what a WebSocket without its upgrade is answered."""

from __future__ import annotations

import pytest
import streamlit as st
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.testclient import TestClient

from course.pages import COURSE
from views.server.base_path import base_path, below_base_path
from views.server.frames_route import FRAMES_ROUTES
from views.server.index_page import NO_UPGRADE, UpgradeRequiredMiddleware, page_routes, redirect_to
from views.server.streamlit_internals import index_html


@pytest.fixture(params=["", "kv", "/a/kv/"])
def base(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The base path, `--server.baseUrlPath` having this value."""
    monkeypatch.setattr(st, "get_option", {"server.baseUrlPath": request.param}.__getitem__)
    assert base_path() == (f"/{request.param.strip('/')}" if request.param else "")
    return base_path()


@pytest.fixture
def client(base: str) -> TestClient:
    routes = [
        *redirect_to(base),
        *below_base_path([*page_routes(page.url_path or "" for page in COURSE), *FRAMES_ROUTES]),
    ]
    return TestClient(Starlette(routes=routes, middleware=[Middleware(UpgradeRequiredMiddleware)]))


def test_every_page_is_streamlits_with_the_script_that_explains_a_missing_websocket(
    client: TestClient, base: str
) -> None:
    for page in COURSE:
        answer = client.get(f"{base}/{page.url_path or ''}")
        script = '<script type="module" src="./api/no_websocket.js"></script>'
        assert answer.text.replace(script, "") == index_html()
        assert answer.text.count(script) == 1
    assert "const CATALOGUE" in client.get(f"{base}/api/no_websocket.js").text
    with client.websocket_connect(f"{base}/api/connection"):
        pass


def test_the_folder_is_reached_without_its_slash_whatever_scheme_the_visitor_uses(
    client: TestClient, base: str
) -> None:
    if base:
        answer = client.get(f"{base}?room=ABCD", follow_redirects=False)
        assert (answer.status_code, answer.headers["location"]) == (307, "kv/?room=ABCD")


def test_a_handshake_that_lost_its_upgrade_is_answered_with_the_reason(
    client: TestClient, base: str, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(2):
        answer = client.get(f"{base}/api/frames/x", headers={"Sec-WebSocket-Key": "x"})
        assert (answer.status_code, answer.text) == (426, NO_UPGRADE + "\n")
    assert [record.getMessage() for record in caplog.records] == [f"{NO_UPGRADE} Path: {base}/api/frames/x"]
