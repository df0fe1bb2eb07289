"""The walks of docs/architecture.md can be followed: every file they name is there, and every method in its file."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "docs" / "architecture.md").read_text("utf-8")
FILES = sorted(set(re.findall(r"`((?:app|pages|views|course|engine|kernels|assets|tests|tools)/[\w./]+)`", TEXT)))
METHODS = re.findall(r"`([\w/]+\.py)`, `(\w+)\.(\w+)`", TEXT)
FUNCTIONS = re.findall(r"`([\w/]+\.py)`, `(\w+)`:", TEXT)
HELPERS = re.findall(r"`([\w/]+\.py)`, `\w+\.\w+`:[^`]*`(_\w+)`", TEXT)


@pytest.mark.parametrize("file", FILES)
def test_a_file_that_is_named_exists(file: str) -> None:
    assert (ROOT / file).exists()


@pytest.mark.parametrize(("file", "owner", "method"), METHODS)
def test_a_step_of_the_walk_is_where_it_says(file: str, owner: str, method: str) -> None:
    tree = ast.parse((ROOT / file).read_text("utf-8"))
    [found] = [node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == owner]
    assert method in {node.name for node in found.body if isinstance(node, ast.FunctionDef)}


@pytest.mark.parametrize(("file", "helper"), FUNCTIONS + HELPERS)
def test_a_function_that_is_named_is_in_its_file(file: str, helper: str) -> None:
    assert f"def {helper}(" in (ROOT / file).read_text("utf-8")


def test_the_walk_to_the_free_queue_takes_four_files() -> None:
    assert [method for _file, _owner, method in METHODS] == ["step", "schedule", "allocate_slots", "take_free_block"]


def test_the_walk_to_a_picture_takes_five_files() -> None:
    assert [name for _file, name in FUNCTIONS] == ["pages", "growth", "picture"]
    _head, _, walk = TEXT.partition("## Walk 2")
    assert len(re.findall(r"^\d\. ", walk.partition("\n## ")[0], re.MULTILINE)) == 5
