"""Events to plain dicts and back, every field checked against its declared type (engine/trace/validation.py)."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from engine.i18n import _
from engine.trace.events import EVENT_TYPES, Event
from engine.trace.validation import field_checks


def event_to_dict(event: Event) -> dict[str, Any]:
    """`{"type": "BlockAllocated", "step": 3, ...}`; tuples become lists when dumped."""
    record: dict[str, Any] = {"type": type(event).__name__}
    for field_ in fields(event):
        record[field_.name] = getattr(event, field_.name)
    return record


def event_from_dict(record: Any) -> Event:
    """The event a dict says it is. Raises ValueError naming the field that is missing or wrong."""
    if not isinstance(record, dict):
        raise ValueError(_("an event must be an object with a `type`."))
    event_type = record.get("type")
    if not isinstance(event_type, str) or event_type not in EVENT_TYPES:
        raise ValueError(_("unknown event type {event_type!r}.").format(event_type=str(event_type)[:80]))
    return EVENT_TYPES[event_type](**_checked_fields(event_type, record))


def unknown_fields(record: dict[str, Any]) -> list[str]:
    """Names in the dict of an event that its type does not have: `event_from_dict` leaves them out."""
    known = field_checks(EVENT_TYPES[record["type"]])  # type: ignore[arg-type]
    return [name for name in record if name != "type" and name not in known]


def _checked_fields(event_type: str, record: dict[str, Any]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for name, (check, required) in field_checks(EVENT_TYPES[event_type]).items():  # type: ignore[arg-type]
        if name in record:
            try:
                values[name] = check(record[name])
            except ValueError as error:
                raise ValueError(f"{event_type}.{name} {error}") from None
        elif required:
            raise ValueError(_("{event_type} lacks `{name}`.").format(event_type=event_type, name=name))
    return values
