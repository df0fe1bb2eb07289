"""Hypothesis strategies for any event, made from the declared field types."""

from __future__ import annotations

from dataclasses import fields
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from hypothesis import strategies as st

from engine.trace.events import Event


def values_of(hint: Any) -> st.SearchStrategy[Any]:
    """Values that the field type allows, small ones and the extremes."""
    origin = get_origin(hint)
    if origin in (Union, UnionType):
        return st.one_of([values_of(arg) for arg in get_args(hint)])
    if origin is tuple:
        return st.lists(values_of(get_args(hint)[0]), max_size=4).map(tuple)
    if origin is Literal:
        return st.sampled_from(get_args(hint))
    return {
        int: st.integers(-(2**64), 2**64),
        str: st.text(max_size=8),
        float: st.floats(allow_nan=False, allow_infinity=False),
        bool: st.booleans(),
        type(None): st.none(),
    }[hint]


def events_of(event_type: type[Event]) -> st.SearchStrategy[Event]:
    hints = get_type_hints(event_type)
    return st.builds(event_type, **{field.name: values_of(hints[field.name]) for field in fields(event_type)})
