"""A little of the fuzz run in every test run; the long one is `python -m tests.fuzz`."""

from __future__ import annotations

import pytest

from tests.fuzz.__main__ import fuzz
from tests.fuzz.targets import TARGETS, Target


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
def test_bad_input_is_answered_or_refused_in_words(target: Target) -> None:
    num_inputs = max(round(100 * target.share), 3)
    assert fuzz(target, num_inputs) >= num_inputs
