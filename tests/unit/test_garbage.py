"""A full collection is made early, but only in a pause that is long enough."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from views.garbage import SECONDS_NEEDED, collect_if_due


@pytest.fixture(autouse=True)
def no_collection_by_itself() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def age(times: int) -> None:
    for _ in range(times):
        gc.collect(1)


def test_nothing_is_collected_long_before_it_is_due() -> None:
    age(6)
    assert not collect_if_due(10.0)
    assert gc.get_count()[2] == 6


def test_it_is_collected_before_python_would() -> None:
    age(7)
    assert collect_if_due(SECONDS_NEEDED)
    assert gc.get_count()[2] == 0


def test_a_short_pause_is_left_alone() -> None:
    age(9)
    assert not collect_if_due(0.9 * SECONDS_NEEDED)
    assert gc.get_count()[2] == 9
