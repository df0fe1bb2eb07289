"""The line of the attention kernel that does each part of online softmax, found in the kernel's source."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import kernels
from engine.i18n import _
from kernels.paged_attention.outline import Place, SoftmaxPart


@dataclass(frozen=True, slots=True)
class SourceLine:
    """`number` counts from 1 in `file`, a path from the repository's root; `function` holds the line."""

    part: SoftmaxPart
    file: str
    function: str
    number: int
    text: str


def kernel_lines(places: Mapping[SoftmaxPart, Place]) -> tuple[SourceLine, ...]:
    """The line at each place (see kernels/paged_attention/outline.py). Nothing is imported: Triton may be absent.

    Raises LookupError when the source no longer has such a line, or has it twice.
    """
    return tuple(_find(part, *place) for part, place in places.items())


def kernel_source(file: str) -> str:
    """A file of the paged attention kernels."""
    return (Path(next(iter(kernels.__path__))) / "paged_attention" / file).read_text("utf-8")


def _find(part: SoftmaxPart, file: str, function: str, mark: str) -> SourceLine:
    lines, (first, last) = kernel_source(file).splitlines(), _functions(file)[function]
    numbers = [number for number in range(first, last + 1) if mark in lines[number - 1]]
    if len(numbers) != 1:
        raise LookupError(
            _("{function} of {file} has {num_numbers} lines with {mark!r}, not one.").format(
                function=function, file=file, num_numbers=len(numbers), mark=mark
            )
        )
    [number] = numbers
    return SourceLine(part, f"kernels/paged_attention/{file}", function, number, lines[number - 1].strip())


@cache
def _functions(file: str) -> dict[str, tuple[int, int]]:
    """First and last line of every function of a file."""
    body = ast.parse(kernel_source(file)).body
    return {node.name: (node.lineno, node.end_lineno or 0) for node in body if isinstance(node, ast.FunctionDef)}
