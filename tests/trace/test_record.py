"""A record is compared and hashed by its fields, and takes nothing else."""

from __future__ import annotations

from dataclasses import fields, replace

import pytest

from engine.trace.events import SlotsWritten, TokenSampled


def test_equal_fields_make_equal_records() -> None:
    one, same = (SlotsWritten(3, "A", 4, (8, 9)) for _ in range(2))
    assert (one, hash(one)) == (same, hash(same))
    assert one != replace(one, start=5) and len({one, same, replace(one, start=5)}) == 2
    assert one != TokenSampled(3, "A", 4, 8, " x")


def test_fields_and_defaults_are_those_of_a_dataclass() -> None:
    assert [field.name for field in fields(SlotsWritten)] == ["step", "seq_id", "start", "slots"]
    assert TokenSampled(1, "A", 0, 7, "x").logprob is None


def test_a_name_that_is_no_field_cannot_be_set() -> None:
    with pytest.raises(AttributeError):
        SlotsWritten(3, "A", 4, (8,)).strat = 5  # type: ignore[attr-defined]
