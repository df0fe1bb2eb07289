"""The app run in this process, on the tiny model, without a browser."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from tests.helpers.app_server import ROOT
from tests.helpers.waiting import PATIENCE, until
from views.server.model_registry import default_model, model_registry

LIVE_ENGINE = "pages/live_engine.py"
OpenPage = Callable[..., AppTest]


@pytest.fixture(autouse=True)
def fresh_server(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Nothing cached by another test: each has a model registry and a session registry of its own."""
    monkeypatch.setenv("PAGED_KV_MODEL", "tiny-random")
    st.cache_resource.clear()
    yield
    st.cache_resource.clear()


@pytest.fixture
def open_page() -> OpenPage:
    """`open_page(file, **query)`: the page after its model has loaded."""

    def open_it(file: str, **query: str) -> AppTest:
        app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60)
        for key, value in query.items():
            app.query_params[key] = value
        app.run()
        if file != "pages/home.py":
            app.switch_page(file).run()
        return until_loaded(app)

    return open_it


def until_loaded(app: AppTest) -> AppTest:
    """Run again until no progress bar is left. A model is waited for in its registry, its kernels may be compiled."""
    name = default_model()
    if app.get("progress") and not model_registry().request(name).is_done:
        until(lambda: model_registry().request(name).is_done, 8 * PATIENCE, f"loading {name}")
        app.run()
    for _ in range(400):
        if not app.get("progress"):
            return app
        time.sleep(0.05)
        app.run()
    raise AssertionError("a progress bar stays")
