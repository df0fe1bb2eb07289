"""The live page while one of two requests goes wrong: it says which and why, and the other is served to its end."""

from __future__ import annotations

import re
from collections.abc import Sequence

import pytest
from torch import Tensor

from engine.sampler import LogitsSampler, SampledToken, SampleRequest
from tests.app.conftest import LIVE_ENGINE, OpenPage
from tests.helpers.app_html import all_html, figure, sentences

NUM_TOKENS = 4
TOLD = (
    "finished: The sampler failed on this request (RuntimeError), so it has ended. The others go on; "
    "the server&#x27;s log has the details."
)


@pytest.fixture
def broken_sampler(monkeypatch: pytest.MonkeyPatch) -> None:
    """It raises for the second new token of request A, whoever else is in the batch."""
    choose = LogitsSampler.sample

    def sample(self: LogitsSampler, logits: Tensor, requests: Sequence[SampleRequest]) -> list[SampledToken]:
        if any(d.group.request_id == "A" and len(d.sequence.output_token_ids) == 1 for d in requests):
            raise RuntimeError("on purpose")
        return choose(self, logits, requests)

    monkeypatch.setattr(LogitsSampler, "sample", sample)


@pytest.mark.usefixtures("broken_sampler")
def test_a_sampler_error_ends_one_request_and_is_shown(open_page: OpenPage) -> None:
    app = open_page(LIVE_ENGINE, prompt="abc", block_size="2", max_tokens=str(NUM_TOKENS), stop_at_end="false")
    for button in ("add", "add", *["step"] * NUM_TOKENS):
        app.button(key=button).click().run()
    heads = dict(re.findall(r'data-request="(.)" data-status="finished">.*?<span>(.*?)</span>', all_html(app)))
    assert heads == {"A": TOLD, "B": "finished: length"}
    assert figure(app, "step") == str(NUM_TOKENS)
    assert figure(app, "used") == "0"
    assert [sentence for sentence in sentences(app) if "failed" in sentence] == []
