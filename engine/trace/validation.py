"""Values that come from outside, checked against the types their dataclass declares: used wherever values enter.

NumPy's and torch's numbers become Python's; anything else that is not what was declared is refused. What passes can be
written to a trace and read again. The checks are made once per dataclass from its annotations, so a new field needs
no code.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, fields
from functools import cache
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from engine.i18n import _

Check = Callable[[Any], Any]
"""Takes a value and returns it as it is kept. Raises ValueError with the end of a sentence: "must be text"."""

MAX_TEXT = 1_000_000
MAX_ITEMS = 1_000_000
MAX_INT = 2**64


@cache
def field_checks(cls: type[Any]) -> Mapping[str, tuple[Check, bool]]:
    """For each field of a dataclass: its check, and whether it has no default."""
    hints = get_type_hints(cls)
    return {f.name: (_check_for(hints[f.name]), f.default is MISSING) for f in fields(cls)}


def check_fields(instance: Any, error: type[ValueError] = ValueError) -> None:
    """Replace every field of a frozen dataclass by its checked value, from `__post_init__`.

    Raises `error` with a sentence that names the field and what it is.
    """
    for name, (check, _text) in field_checks(type(instance)).items():  # type: ignore[arg-type]
        value = getattr(instance, name)
        try:
            object.__setattr__(instance, name, check(value))
        except ValueError as problem:
            raise error(
                _("{name} {removesuffix}; it is {shown}.").format(
                    name=name, removesuffix=str(problem).removesuffix("."), shown=shown(value)
                )
            ) from None


def shown(value: Any) -> str:
    """A value in a sentence: its repr, cut where it is long, with nothing that cannot be written."""
    try:
        text = ascii(value) if isinstance(value, str) and not _is_writable(value) else repr(value)
    except ValueError:  # a whole number of more digits than Python writes
        text = f"a number of {type(value).__name__} too long to write"
    text = text.encode("utf-8", "backslashreplace").decode("utf-8")
    return text if len(text) <= 80 else f"{text[:77]}..."


def whole_numbers(value: Any) -> list[int]:
    """Token ids, block ids: any sequence of whole numbers, NumPy's arrays and torch's tensors of one dimension too.

    Raises ValueError ("must be ...").
    """
    return [whole_number(item) for item in _items(value)]


def checked_permutation(value: Any, count: int) -> list[int]:
    """Each of 0 to `count` - 1 exactly once, in the order given. Raises ValueError in a sentence."""
    try:
        numbers = whole_numbers(value)
    except ValueError as problem:
        raise ValueError(_("a permutation of blocks {problem}").format(problem=problem)) from None
    if sorted(numbers) != list(range(count)):
        raise ValueError(_("a permutation names each of the {count} blocks exactly once").format(count=count))
    return numbers


def whole_number(value: Any) -> int:
    """An integer of at most 64 bits; NumPy's and torch's become Python's. Raises ValueError ("must be ...")."""
    number = _plain(value)
    if not isinstance(number, int) or isinstance(number, bool) or abs(number) > MAX_INT:
        raise ValueError(_("must be a whole number of at most 64 bits."))
    return int(number)


def text(value: Any) -> str:
    """A text of at most MAX_TEXT characters that UTF-8 can hold. Raises ValueError ("must be ...")."""
    if not isinstance(value, str) or len(value) > MAX_TEXT:
        raise ValueError(_("must be text of at most {max_text} characters.").format(max_text=MAX_TEXT))
    if not _is_writable(value):
        raise ValueError(_("must be text without unpaired surrogates."))
    return str(value)


def _check_for(hint: Any) -> Check:
    origin = get_origin(hint)
    if origin in (Union, UnionType):
        return _any_of([_check_for(a) for a in get_args(hint) if a is not type(None)], type(None) in get_args(hint))
    if origin is tuple:
        return _tuple_of(_check_for(get_args(hint)[0]))
    if origin is Literal:
        return _one_of(get_args(hint))
    return {int: whole_number, str: text, float: _number, bool: _truth}[hint]


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


def _tuple_of(check: Check) -> Check:
    def checked(value: Any) -> tuple[Any, ...]:
        return tuple(check(item) for item in _items(value))

    return checked


def _one_of(allowed: tuple[Any, ...]) -> Check:
    def checked(value: Any) -> Any:
        if not isinstance(value, str) or value not in allowed:
            raise ValueError(_("must be one of {names}.").format(names=", ".join(map(str, allowed))))
        return str(value)

    return checked


def _items(value: Any) -> Sequence[Any]:
    if getattr(value, "ndim", None) == 1 and hasattr(value, "tolist"):
        value = value.tolist()
    if not isinstance(value, Sequence) or isinstance(value, str | bytes | bytearray) or len(value) > MAX_ITEMS:
        raise ValueError(_("must be a list of at most {max_items} items.").format(max_items=MAX_ITEMS))
    return value


def _plain(value: Any) -> Any:
    """A number of NumPy or torch as Python's own; everything else as it is."""
    return value.item() if getattr(value, "ndim", None) == 0 and hasattr(value, "item") else value


def _number(value: Any) -> float:
    number = _plain(value)
    try:
        if isinstance(number, int | float) and not isinstance(number, bool) and math.isfinite(number):
            return float(number)
    except OverflowError:  # a whole number beyond all floats
        pass
    raise ValueError(_("must be a finite number."))


def _truth(value: Any) -> bool:
    truth = _plain(value)
    if not isinstance(truth, bool):
        raise ValueError(_("must be true or false."))
    return truth


def _is_writable(value: str) -> bool:
    """Half a surrogate pair has no UTF-8."""
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True
