"""A little of the fuzz run in every test run; the long one is `python -m tests.fuzz`."""

from __future__ import annotations

import pytest

from tests.fuzz.__main__ import fuzz
from tests.fuzz.targets import TARGETS, Target


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
def test_bad_input_is_accepted_or_refused_with_a_reason(target: Target) -> None:
    num_inputs = max(round(100 * target.share), 3)
    assert fuzz(target, num_inputs) >= num_inputs


@pytest.mark.slow
def test_twenty_thousand_requests_to_the_api_server() -> None:
    [target] = [target for target in TARGETS if target.name == "API requests"]
    assert fuzz(target, 20_000) >= 20_000
