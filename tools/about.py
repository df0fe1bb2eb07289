"""What to put into a bug report: python -m tools.about

Versions, the machine's kind and which settings are set, without names of users, folders, hosts or models.
"""

from __future__ import annotations

import os
import platform
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = (
    "streamlit",
    "torch",
    "numba",
    "triton",
    "transformers",
    "numpy",
    "pandas",
    "plotly",
    "starlette",
    "uvicorn",
)


def app_version() -> str:
    """The version of `pyproject.toml`, which the changelog begins with."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    return str(project["version"])


def commit() -> str:
    """The commit of this checkout, with `, changed` where files differ from it; empty outside of a checkout."""
    described = ["git", "-C", str(ROOT), "describe", "--always", "--dirty=, changed", "--exclude=*"]
    try:
        return subprocess.run(described, capture_output=True, text=True, timeout=10, check=True).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return ""


def about() -> Iterator[tuple[str, str]]:
    """Name and value of each line."""
    yield "version", app_version() + (f" ({found})" if (found := commit()) else "")
    yield "python", f"{platform.python_version()}, {platform.python_implementation()}"
    yield "system", f"{platform.system()} {platform.release()}, {platform.machine()}, {os.cpu_count()} processors"
    yield "packages", ", ".join(map(_with_version, PACKAGES))
    yield "backend", _backend()
    yield "settings", ", ".join(sorted(name for name in os.environ if name.startswith("PAGED_KV_"))) or "none"


def _with_version(name: str) -> str:
    try:
        return f"{name} {version(name)}"
    except PackageNotFoundError:
        return f"{name} missing"


def _backend() -> str:
    """The attention backend that would run, and why; or what keeps it from running."""
    try:
        from engine.model.device import resolve_device
        from kernels.backend import select_backend

        device = resolve_device("auto")
        backend = select_backend("auto", device)
        return f"{backend.name} on {device.type}: {backend.reason}"
    except Exception as error:
        return f"does not start ({type(error).__name__})"


def main() -> int:
    """Print each line. Returns the exit status."""
    for name, value in about():
        print(f"{name:9} {value}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
