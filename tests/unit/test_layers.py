"""Imports point down only: pages -> views -> engine -> kernels; the event log and the block pool know no torch."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
INTERFACE_PACKAGES = {"streamlit", "plotly", "pandas", "views", "pages", "app"}
FORBIDDEN = {
    "kernels": INTERFACE_PACKAGES | {"engine"},
    "engine": INTERFACE_PACKAGES,
    "views": {"pages", "app"},
    "pages": {"app", "kernels", "torch"},
}
TORCH_FREE = (
    "events", "event_codec", "state", "trace", "usage", "block_pool", "kv_cache", "contiguous", "trace_source",
    "remote.server", "remote.recording",
)  # fmt: skip


def imported_packages(file: Path) -> Iterator[tuple[int, str]]:
    """Line and top-level package of every import, those inside functions included."""
    for node in ast.walk(ast.parse(file.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name.split(".")[0]) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            yield node.lineno, node.module.split(".")[0]


@pytest.mark.parametrize("layer", FORBIDDEN)
def test_a_layer_imports_nothing_from_above(layer: str) -> None:
    files = sorted((ROOT / layer).rglob("*.py"))
    assert files, f"there is no file in {layer}/"
    upward = [
        f"{file.relative_to(ROOT)}:{line} imports {package}"
        for file in files
        for line, package in imported_packages(file)
        if package in FORBIDDEN[layer]
    ]
    assert upward == []


@pytest.mark.parametrize("module", TORCH_FREE)
def test_the_log_and_the_pool_run_without_torch(module: str) -> None:
    program = f"import sys, engine.{module}; sys.exit('torch' in sys.modules or 'streamlit' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], cwd=ROOT, check=False).returncode == 0


def test_the_engine_runs_without_the_packages_of_the_interface() -> None:
    program = (
        "import sys\n"
        "for name in ('streamlit', 'plotly', 'pandas'): sys.modules[name] = None\n"
        "from engine import Engine, EngineConfig, SamplingParams\n"
        "config = EngineConfig(model='tiny-random', block_size=4, num_blocks=8, attention_backend='reference')\n"
        "engine = Engine(config)\n"
        "[output] = engine.generate(['abc'], SamplingParams(max_tokens=3, ignore_eos=True))\n"
        "assert len(output.outputs[0].token_ids) == 3\n"
    )
    assert subprocess.run([sys.executable, "-c", program], cwd=ROOT, check=False).returncode == 0


def test_only_one_module_touches_what_streamlit_keeps_private() -> None:
    users = [
        str(file.relative_to(ROOT))
        for folder in ("views", "pages")
        for file in sorted((ROOT / folder).rglob("*.py"))
        if "streamlit.runtime" in file.read_text("utf-8")
    ]
    assert users == ["views/streamlit_private.py"]
