"""Events to plain dicts and back, every field checked against its declared type.

The checks are made once per event type from the dataclass annotations, so a new event needs no codec code.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import MISSING, fields
from functools import cache
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from engine.events import EVENT_TYPES, Event

Check = Callable[[Any], Any]
MAX_TEXT = 1_000_000
MAX_ITEMS = 1_000_000
MAX_INT = 2**64


def event_to_dict(event: Event) -> dict[str, Any]:
    """`{"type": "BlockAllocated", "step": 3, ...}`; tuples become lists when dumped."""
    record: dict[str, Any] = {"type": type(event).__name__}
    for field_ in fields(event):
        record[field_.name] = getattr(event, field_.name)
    return record


def event_from_dict(record: Any) -> Event:
    """The event a dict says it is. Raises ValueError naming the field that is missing or wrong."""
    if not isinstance(record, dict):
        raise ValueError("an event must be an object with a `type`.")
    event_type = record.get("type")
    if not isinstance(event_type, str) or event_type not in EVENT_TYPES:
        raise ValueError(f"unknown event type {str(event_type)[:80]!r}.")
    return EVENT_TYPES[event_type](**_checked_fields(event_type, record))


def _checked_fields(event_type: str, record: dict[str, Any]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for name, (check, required) in _field_checks(event_type).items():
        if name in record:
            try:
                values[name] = check(record[name])
            except ValueError as error:
                raise ValueError(f"{event_type}.{name} {error}") from None
        elif required:
            raise ValueError(f"{event_type} lacks `{name}`.")
    return values


@cache
def _field_checks(event_type: str) -> dict[str, tuple[Check, bool]]:
    cls = EVENT_TYPES[event_type]
    hints = get_type_hints(cls)
    return {f.name: (_check_for(hints[f.name]), f.default is MISSING) for f in fields(cls)}


def _check_for(hint: Any) -> Check:
    origin = get_origin(hint)
    if origin in (Union, UnionType):
        return _any_of([_check_for(a) for a in get_args(hint) if a is not type(None)], type(None) in get_args(hint))
    if origin is tuple:
        return _sequence(_check_for(get_args(hint)[0]))
    if origin is Literal:
        return _one_of(get_args(hint))
    return {int: _integer, str: _text, float: _number, bool: _truth}[hint]


def _any_of(checks: Sequence[Check], allows_none: bool) -> Check:
    def checked(value: Any) -> Any:
        if value is None and allows_none:
            return None
        complaints = []
        for check in checks:
            try:
                return check(value)
            except ValueError as error:
                complaints.append(str(error).removesuffix("."))
        raise ValueError(f"{' or '.join(complaints)}.")

    return checked


def _sequence(check: Check) -> Check:
    def checked(value: Any) -> tuple[Any, ...]:
        if not isinstance(value, list | tuple) or len(value) > MAX_ITEMS:
            raise ValueError(f"must be a list of at most {MAX_ITEMS} items.")
        return tuple(check(item) for item in value)

    return checked


def _one_of(allowed: tuple[Any, ...]) -> Check:
    def checked(value: Any) -> Any:
        if value not in allowed:
            raise ValueError(f"must be one of {', '.join(map(str, allowed))}.")
        return value

    return checked


def _integer(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or abs(value) > MAX_INT:
        raise ValueError("must be a whole number of at most 64 bits.")
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str) or len(value) > MAX_TEXT:
        raise ValueError(f"must be text of at most {MAX_TEXT} characters.")
    return value


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ValueError("must be a finite number.")
    return float(value)


def _truth(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError("must be true or false.")
    return value
