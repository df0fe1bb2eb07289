"""Make a kit: the app, its wheels, the model, recorded runs, and the script that installs them.

FOLDER/
  install.py         run this on the other machine; needs Python and nothing else
  README.txt         how
  requirements.txt   the packages: the app's, or those of requirements-cpu.txt
  app/               the app, recorded runs (assets/traces) included
  wheels/            every package, for this system and this Python
  weights/           the converted model with its manifest
"""

from __future__ import annotations

import platform
import shutil
import subprocess
import sys
from pathlib import Path

from engine.model.load_report import ProgressCallback
from engine.model.weights.cache import cached_copy
from engine.model.weights.embedded import embedded_folder
from tools.kit import install

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = (
    "app.py", "pages", "views", "course", "engine", "kernels", "benchmarks", "tools", "assets", "locale", ".streamlit",
    "pyproject.toml", "requirements.txt", "requirements-cpu.txt", "README.md", "LICENSE", "NOTICE",
)  # fmt: skip
README = """The PagedAttention visualizer, without a network.

On the machine where it shall run, with Python {python} ({system}):

    python install.py

It puts everything into one folder in your home and says how to start it. Nothing is fetched.
The wheels are for {system} and Python {python}; another system needs a kit made on such a system.
"""


class KitError(Exception):
    """The kit could not be made; the message says why and what to do."""


def make_kit(folder: Path, progress: ProgressCallback, requirements: Path = ROOT / "requirements.txt") -> Path:
    """Fill `folder`, which must not exist or be empty. Raises KitError or ModelLoadError with one plain sentence."""
    if folder.exists() and any(folder.iterdir()):
        raise KitError(f"{folder} is not empty. Name a new folder, or empty this one.")
    folder.mkdir(parents=True, exist_ok=True)
    copy_program(folder / "app")
    cached_copy(embedded_folder(progress), folder / "weights")
    download_wheels(requirements, folder / "wheels")
    pins = [
        line for line in requirements.read_text("utf-8").splitlines() if not line.startswith("--")
    ]  # no index there
    (folder / "requirements.txt").write_text("\n".join(pins) + "\n", "utf-8")
    shutil.copy2(install.__file__, folder / "install.py")
    (folder / "README.txt").write_text(README.format(python=python_version(), system=platform.system()), "utf-8")
    return folder


def copy_program(target: Path) -> None:
    """Copy the files of PROGRAM without caches and compiled files."""
    leave = shutil.ignore_patterns("__pycache__", "*.pyc", "*.nbi", "*.nbc")
    for name in PROGRAM:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, target / name, ignore=leave)
        else:
            target.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, target / name)


def download_wheels(requirements: Path, wheels: Path) -> None:
    """Download every package with its dependencies by pip, which prints its own progress. Raises KitError."""
    command = [sys.executable, "-m", "pip", "download", "--only-binary=:all:", "--disable-pip-version-check"]
    command += ["--requirement", str(requirements), "--dest", str(wheels)]
    if subprocess.run(command, check=False).returncode != 0:
        raise KitError("pip could not fetch all packages; its last lines say which. Connect to the network and repeat.")


def python_version() -> str:
    """`3.11`: the version that the kit's wheels are for."""
    return f"{sys.version_info.major}.{sys.version_info.minor}"
