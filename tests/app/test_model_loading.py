"""The first start: progress while the model comes, one sentence when it cannot, the tiny model meanwhile, a retry."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest
from streamlit.testing.v1 import AppTest

import engine.model.weights.load
from engine.model.load_report import ModelUnavailableError, Progress, ProgressCallback
from engine.model.weights.load import LoadedModel
from tests.app.conftest import LIVE_ENGINE, OpenPage, until_loaded
from tests.helpers.app_html import all_html, figure, sentences
from tests.helpers.app_server import ROOT

EMBEDDED = "smollm2-135m-instruct"
OFFLINE = "The model is not on this machine yet and could not be fetched. Connect to the network once."


class FakeWeights:
    """Stands in for the fetch of the embedded model: waits for `gate`, then fails or gives the tiny weights."""

    def __init__(self) -> None:
        self.gate = threading.Event()
        self.offline = True
        self.num_loads = 0
        self._load = engine.model.weights.load.load_model

    def load_model(self, name: str, *, device: object, progress: ProgressCallback) -> LoadedModel:
        if name == EMBEDDED:
            self.num_loads += 1
            progress(Progress(31_000_000, 93_000_000, "Fetching the model"))
            self.gate.wait(30)
            if self.offline:
                raise ModelUnavailableError(OFFLINE)
        return self._load("tiny-random")


@pytest.fixture
def weights(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeWeights]:
    fake = FakeWeights()
    monkeypatch.setattr(engine.model.weights.load, "load_model", fake.load_model)
    monkeypatch.delenv("PAGED_KV_MODEL")
    yield fake
    fake.gate.set()


def test_the_download_shows_progress_and_then_the_page_opens(weights: FakeWeights) -> None:
    app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60).run()
    app.switch_page(LIVE_ENGINE).run()
    [bar] = app.get("progress")
    assert (bar.proto.value, bar.proto.text) == (33, "Fetching the model: 31 of 93 MB")
    assert not app.button, "nothing can be added to an engine that is not there"
    weights.offline = False
    weights.gate.set()
    until_loaded(app)
    assert figure(app, "free") == "32"
    assert weights.num_loads == 1


def test_without_network_the_tiny_model_runs_with_a_label(weights: FakeWeights, open_page: OpenPage) -> None:
    weights.gate.set()
    app = open_page(LIVE_ENGINE, prompt="abc")
    assert sentences(app)[0] == f"{OFFLINE} Until then the live engine runs tiny-random, a model of random weights."
    assert "tiny-random in float32" in all_html(app)
    app.button(key="add").click().run()
    app.button(key="step").click().run()
    assert figure(app, "step") == "1"


def test_a_retry_loads_the_model_again(weights: FakeWeights, open_page: OpenPage) -> None:
    weights.gate.set()
    app = open_page(LIVE_ENGINE)
    weights.offline = False
    app.button(key="retry_model").click().run()
    until_loaded(app)
    assert weights.num_loads == 2
    assert sentences(app) == ["Add a request, then press Step: the model reads the prompt and its block table fills."]


def test_home_opens_while_the_model_loads(weights: FakeWeights) -> None:
    app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60).run()
    assert app.title[0].value == "See PagedAttention work"
    weights.gate.set()
    until_loaded(app)
    assert sentences(app) == [f"{OFFLINE} Until then the live engine runs tiny-random, a model of random weights."]
