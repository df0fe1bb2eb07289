"""Imports point down only: pages -> views -> course -> engine -> kernels; the log and the pool know no torch.

Inside a layer, rooms (its folders, and the modules at its root as one) import each other in one direction only.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Set
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
INTERFACE_PACKAGES = {"streamlit", "plotly", "pandas", "views", "pages", "app"}
BY_HAND = {"benchmarks", "tools"}
"""What is run by hand may import everything, and nothing imports it."""
FORBIDDEN = {
    "kernels": INTERFACE_PACKAGES | BY_HAND | {"engine", "course"},
    "engine": INTERFACE_PACKAGES | BY_HAND | {"course"},
    "course": INTERFACE_PACKAGES | BY_HAND,
    "views": BY_HAND | {"pages", "app"},
    "pages": BY_HAND | {"app", "kernels", "torch"},
    "app.py": BY_HAND,
}
OTHER_PACKAGES = INTERFACE_PACKAGES - {"views", "pages", "app"} | {
    "filelock", "gguf", "jinja2", "msgspec", "numba", "platformdirs", "safetensors", "tokenizers", "transformers",
}  # fmt: skip
"""A machine that is lent for its card has none of them."""
ENGINE_ROOMS = (
    "i18n", "trace", "kv_cache", "model", "baselines", "remote", "server_log", "capacity", "", "traffic", "inspect",
    "serve",
)  # fmt: skip
"""The rooms of engine/, each importing only from those before it; "" is the root."""
TORCH_FREE = (
    "trace.events", "trace.codec", "trace.state", "trace.trace", "trace.usage", "trace.source", "kv_cache.block_pool",
    "kv_cache.manager", "baselines.contiguous", "remote.server", "remote.recording", "server_log.explain",
    "capacity.plan",
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
    files = [ROOT / layer] if layer.endswith(".py") else sorted((ROOT / layer).rglob("*.py"))
    assert files, f"there is no file in {layer}/"
    upward = [
        f"{file.relative_to(ROOT)}:{line} imports {package}"
        for file in files
        for line, package in imported_packages(file)
        if package in FORBIDDEN[layer]
    ]
    assert upward == []


def room_of(layer: str, module: str) -> str:
    """`engine.kv_cache.manager` -> `kv_cache`; `engine.scheduler` -> "" (the root)."""
    folder = module.split(".")[1]
    return folder if (ROOT / layer / folder).is_dir() else ""


def imports_between_rooms(layer: str) -> dict[str, dict[str, list[str]]]:
    """Room -> imported room -> the imports, those inside functions included."""
    found: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for file in sorted((ROOT / layer).rglob("*.py")):
        parts = file.relative_to(ROOT).parts
        room = parts[1] if len(parts) > 2 else ""
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            modules: list[str] = []
            if isinstance(node, ast.Import):
                modules = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.module:
                modules = [f"{node.module}.{alias.name}" for alias in node.names]
            for module in modules:
                if module.startswith(f"{layer}.") and (target := room_of(layer, module)) != room:
                    found[room][target].append(f"{'/'.join(parts)}:{getattr(node, 'lineno', 0)} imports {module}")
    return found


def rooms_in_circles(imports: Mapping[str, Mapping[str, object]]) -> set[str]:
    """Rooms from which imports lead back to themselves."""

    def reached(start: str) -> Set[str]:
        seen: set[str] = set()
        left = list(imports.get(start, {}))
        while left:
            room = left.pop()
            if room not in seen:
                seen.add(room)
                left += imports.get(room, {})
        return seen

    return {room for room in imports if room in reached(room)}


def test_a_cycle_is_detected() -> None:
    assert rooms_in_circles({"a": {"b": []}, "b": {"c": []}, "c": {"b": []}}) == {"b", "c"}
    assert rooms_in_circles({"a": {"b": [], "c": []}, "b": {"c": []}}) == set()


@pytest.mark.parametrize("layer", ["engine", "course", "views"])
def test_no_import_cycle_between_rooms(layer: str) -> None:
    imports = imports_between_rooms(layer)
    assert rooms_in_circles(imports) == set(), {room: dict(targets) for room, targets in imports.items()}


def test_rooms_of_the_engine_import_in_one_order() -> None:
    upward = [
        line
        for room, targets in imports_between_rooms("engine").items()
        for target, lines in targets.items()
        if ENGINE_ROOMS.index(target) > ENGINE_ROOMS.index(room)
        for line in lines
    ]
    assert upward == []


def test_the_root_of_the_engine_is_at_most_16_modules() -> None:
    assert len(list((ROOT / "engine").glob("*.py"))) <= 16


@pytest.mark.parametrize("module", TORCH_FREE)
def test_the_log_and_the_pool_run_without_torch(module: str) -> None:
    program = f"import sys, engine.{module}; sys.exit('torch' in sys.modules or 'streamlit' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], cwd=ROOT, check=False).returncode == 0


def test_the_tiny_model_runs_on_torch_and_numpy_alone() -> None:
    program = (
        "import sys\n"
        f"for name in {sorted(OTHER_PACKAGES)}: sys.modules[name] = None\n"
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
    assert users == ["views/server/streamlit_internals.py"]


def test_no_two_scripts_of_the_map_have_one_number() -> None:
    numbers = [file.name.partition("_")[0] for file in (ROOT / "assets" / "memory_map" / "js").glob("*.js")]
    assert sorted(numbers) == sorted(set(numbers))
