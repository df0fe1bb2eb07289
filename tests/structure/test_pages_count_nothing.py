"""The rule of the house: no number on a page is computed beside the engine."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from course.pages import LESSONS

ROOT = Path(__file__).resolve().parents[2]
FILES = sorted([ROOT / page.file for page in LESSONS] + list((ROOT / "views" / "lessons").glob("*.py")))


@pytest.mark.parametrize("file", FILES, ids=lambda file: f"{file.parent.name}/{file.name}")
def test_a_lesson_multiplies_and_divides_nothing_and_adds_no_two_quantities(file: Path) -> None:
    """One more or one less (the next action, the last index) is a place in a list, not a count of memory."""
    operations = [node for node in ast.walk(ast.parse(file.read_text("utf-8"))) if isinstance(node, ast.BinOp)]
    assert [ast.unparse(node) for node in operations if counts_memory(node)] == []


def counts_memory(node: ast.BinOp) -> bool:
    if isinstance(node.op, ast.Add | ast.Sub):
        return not any(isinstance(side, ast.Constant) for side in (node.left, node.right))
    return isinstance(node.op, ast.Mult | ast.Div | ast.FloorDiv | ast.Pow)


@pytest.mark.parametrize(
    ("expression", "counts"), [("a * b", True), ("a - b", True), ("n - 1", False), ("a | b", False)]
)
def test_the_check_can_fail(expression: str, counts: bool) -> None:
    [node] = [node for node in ast.walk(ast.parse(expression)) if isinstance(node, ast.BinOp)]
    assert counts_memory(node) is counts
