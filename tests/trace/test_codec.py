"""Events as JSON: every type there and back, and every wrong field refused by name."""

from __future__ import annotations

import json
from dataclasses import MISSING, fields
from types import UnionType
from typing import Literal, Union, get_args, get_origin, get_type_hints

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.trace.codec import event_from_dict, event_to_dict, unknown_fields
from engine.trace.events import EVENT_TYPES, RequestAdded, TokenSampled
from engine.trace.validation import MAX_ITEMS, MAX_TEXT
from tests.helpers.event_strategies import events_of

FIELDS = [(name, field.name) for name, cls in EVENT_TYPES.items() for field in fields(cls)]


def plain_record(event_type: str) -> dict:
    """A right record of the type, the simplest that Hypothesis would think of."""

    def value_of(hint):
        origin = get_origin(hint)
        if origin is Literal:
            return get_args(hint)[0]
        options = get_args(hint) if origin in (Union, UnionType) else (hint,)
        if type(None) in options:
            return None
        return [] if origin is tuple else {int: 1, str: "A", float: 0.5, bool: True}[options[0]]

    hints = get_type_hints(EVENT_TYPES[event_type])
    return {"type": event_type} | {f.name: value_of(hints[f.name]) for f in fields(EVENT_TYPES[event_type])}


@pytest.mark.parametrize("event_type", EVENT_TYPES)
@settings(max_examples=15)
@given(data=st.data())
def test_round_trip_through_json(event_type, data):
    event = data.draw(events_of(EVENT_TYPES[event_type]))
    text = json.dumps(event_to_dict(event), ensure_ascii=False)
    again = event_from_dict(json.loads(text))
    assert again == event
    assert type(again) is type(event)
    assert event_to_dict(again) == event_to_dict(event)


@pytest.mark.parametrize(
    "piece",
    [
        "",
        " ",
        "\n\t",
        "\x00",
        "café",
        "日本語",
        "مرحبا",
        "👩‍👩‍👧‍👦",
        "🇫🇷",
        "\u202e",
        "<img src=x onerror=alert(1)>",
        "$5 **b**",
        "\ufffd",
    ],
)
def test_text_round_trips_unchanged(piece):
    event = TokenSampled(1, piece, 2, 3, piece, -0.5)
    assert event_from_dict(json.loads(json.dumps(event_to_dict(event), ensure_ascii=False))) == event


@pytest.mark.parametrize(("event_type", "field"), FIELDS)
def test_a_wrong_field_is_named(event_type, field):
    record = plain_record(event_type)
    assert event_from_dict(record)
    with pytest.raises(ValueError, match=rf"^{event_type}\.{field} must be "):
        event_from_dict(record | {field: {"not": "this"}})


@pytest.mark.parametrize(("event_type", "field"), FIELDS)
def test_a_missing_field_is_named_unless_it_has_a_default(event_type, field):
    record = plain_record(event_type)
    del record[field]
    default = next(f.default for f in fields(EVENT_TYPES[event_type]) if f.name == field)
    if default is MISSING:
        with pytest.raises(ValueError, match=f"^{event_type} lacks `{field}`\\.$"):
            event_from_dict(record)
    else:
        assert getattr(event_from_dict(record), field) == default


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"step": True}, "TokenSampled.step must be a whole number of at most 64 bits."),
        ({"step": 1.0}, "TokenSampled.step must be a whole number of at most 64 bits."),
        ({"step": 2**64 + 1}, "TokenSampled.step must be a whole number of at most 64 bits."),
        ({"step": -(2**64) - 1}, "TokenSampled.step must be a whole number of at most 64 bits."),
        ({"step": None}, "TokenSampled.step must be a whole number of at most 64 bits."),
        ({"seq_id": 7}, "TokenSampled.seq_id must be text of at most 1000000 characters."),
        ({"piece": "x" * (MAX_TEXT + 1)}, "TokenSampled.piece must be text of at most 1000000 characters."),
        ({"logprob": float("nan")}, "TokenSampled.logprob must be a finite number."),
        ({"logprob": float("inf")}, "TokenSampled.logprob must be a finite number."),
        ({"logprob": "0.5"}, "TokenSampled.logprob must be a finite number."),
        ({"logprob": True}, "TokenSampled.logprob must be a finite number."),
        ({"logprob": 10**400}, "TokenSampled.logprob must be a finite number."),
        ({"piece": "\ud83d"}, "TokenSampled.piece must be text without unpaired surrogates."),
    ],
)
def test_values_out_of_bounds_are_refused(changes, sentence):
    record = event_to_dict(TokenSampled(1, "A", 2, 3, "x"))
    with pytest.raises(ValueError) as error:
        event_from_dict(record | changes)
    assert str(error.value) == sentence


def test_lists_are_bounded_and_checked_inside():
    record = event_to_dict(RequestAdded(1, "A", (1,), ("x",), 4))
    with pytest.raises(ValueError, match=r"^RequestAdded\.pieces must be a list of at most 1000000 items\.$"):
        event_from_dict(record | {"pieces": ["x"] * (MAX_ITEMS + 1)})
    with pytest.raises(ValueError, match=r"^RequestAdded\.pieces must be text"):
        event_from_dict(record | {"pieces": ["x", 5]})
    with pytest.raises(ValueError, match=r"^RequestAdded\.prompt_token_ids must be a list"):
        event_from_dict(record | {"prompt_token_ids": "12"})


def test_values_outside_an_enum_are_refused_with_the_enum():
    record = plain_record("RequestFinished") | {"reason": "bored"}
    with pytest.raises(ValueError) as error:
        event_from_dict(record)
    assert str(error.value) == "RequestFinished.reason must be one of stop, length, abort, beam_pruned, error."


@pytest.mark.parametrize("record", [None, 5, "StepCompleted", [], [["type", "StepCompleted"]]])
def test_json_that_is_no_object_is_refused(record):
    with pytest.raises(ValueError, match=r"^an event must be an object with a `type`\.$"):
        event_from_dict(record)


@pytest.mark.parametrize("event_type", [None, 3, "Event", "Trace", "__init__", "X" * 10_000, ["StepCompleted"]])
def test_unknown_types_are_refused_with_a_short_message(event_type):
    with pytest.raises(ValueError, match=r"^unknown event type ") as error:
        event_from_dict({"type": event_type, "step": 1})
    assert len(str(error.value)) < 120


def test_unknown_extra_fields_are_left_out_and_named():
    """A newer writer may add fields; a reader keeps what it knows."""
    record = plain_record("BlockRemoved") | {"kv_cache_spec_kind": "full_attention"}
    assert event_from_dict(record) == event_from_dict(plain_record("BlockRemoved"))
    assert (unknown_fields(record), unknown_fields(plain_record("BlockRemoved"))) == (["kv_cache_spec_kind"], [])
