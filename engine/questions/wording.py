"""Words that several lessons' questions use."""

from __future__ import annotations

from collections.abc import Sequence

from engine.said import Said, said


def how_many(count: int, noun: str) -> Said:
    """`1 block`, `3 blocks`"""
    return said(f"{{count:{noun}}}", count=count)


def listed(numbers: Sequence[int]) -> str:
    """`8, 6 and 10`"""
    *most, last = map(str, numbers)
    return said("{most} and {last}", most=", ".join(most), last=last) if most else last
