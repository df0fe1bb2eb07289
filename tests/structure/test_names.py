"""One name, one thing."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LAYERS = ("kernels", "engine", "course", "views", "pages", "tools")


def test_no_two_public_classes_have_one_name() -> None:
    places: dict[str, list[str]] = defaultdict(list)
    for layer in LAYERS:
        for file in sorted((ROOT / layer).rglob("*.py")):
            for node in ast.walk(ast.parse(file.read_text("utf-8"))):
                if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                    places[node.name].append(f"{file.relative_to(ROOT)}:{node.lineno}")
    assert len(places) > 300
    assert {name: where for name, where in places.items() if len(where) > 1} == {}
