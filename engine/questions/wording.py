"""Words that several lessons' questions use."""

from __future__ import annotations

from collections.abc import Sequence


def listed(numbers: Sequence[int]) -> str:
    """`8, 6 and 10`"""
    *most, last = map(str, numbers)
    return f"{', '.join(most)} and {last}" if most else last
