"""Records that a step makes for every token, so that making one must cost little."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeVar, dataclass_transform

T = TypeVar("T")


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def record(cls: type[T]) -> type[T]:
    """A dataclass with slots, compared and hashed by its fields. Nobody assigns to one that is made.

    Type checkers hold that, not Python: a frozen dataclass sets each field by a call, and took 2.1 microseconds to make
    where this takes 0.5 (six fields, measured on one machine); a sequence needs eight records a step.
    """
    return dataclass(slots=True, unsafe_hash=True)(cls)
