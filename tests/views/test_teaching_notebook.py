"""docs/kv_cache.ipynb runs from its top to its bottom, and shows and prints what its text says."""

from __future__ import annotations

import ast
import contextlib
import io
import json
from typing import Any

import pytest

from tests.helpers.app_server import ROOT
from views.memory_map.notebook import ShownTrace

NOTEBOOK = ROOT / "docs" / "kv_cache.ipynb"


def run_cell(source: str, names: dict[str, Any]) -> tuple[str, Any]:
    """What a code cell prints, and the value of its last line, which a notebook shows."""
    body = ast.parse(source).body
    last = ast.Expression(body.pop().value) if isinstance(body[-1], ast.Expr) else None  # type: ignore[attr-defined]
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(ast.Module(body, []), NOTEBOOK.name, "exec"), names)
        value = eval(compile(last, NOTEBOOK.name, "eval"), names) if last is not None else None
    return printed.getvalue(), value


@pytest.mark.slow
@pytest.mark.embedded
def test_the_notebook_runs_and_shows_what_it_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(NOTEBOOK.parent)
    cells = json.loads(NOTEBOOK.read_text("utf-8"))["cells"]
    names: dict[str, Any] = {}
    results = [run_cell("".join(cell["source"]), names) for cell in cells if cell["cell_type"] == "code"]
    printed = "".join(text for text, _value in results)
    assert "Paris" in printed
    assert "A takes free block 0 as its block 0." in printed
    assert "step 2: blocks 2, empty slots 2" in printed
    [found] = [line for line in printed.splitlines() if line.startswith("tokens found: ")]
    assert int(found.split()[-1]) > 0 and int(found.split()[-1]) % 4 == 0
    [copied] = [line for line in printed.splitlines() if line.startswith("blocks copied")]
    assert int(copied.split()[-1]) >= 1
    assert sum(isinstance(value, ShownTrace) for _text, value in results) == 2


def test_the_notebook_is_kept_without_outputs() -> None:
    for cell in json.loads(NOTEBOOK.read_text("utf-8"))["cells"]:
        assert cell.get("outputs", []) == [] and cell.get("execution_count") is None
