"""The offline kit: what is in it, and that it installs where no package index can be asked."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from engine.model.load_report import ignore_progress
from engine.model.weights.cache import is_intact
from engine.model.weights.embedded import CACHE_NAME
from tools.kit import make
from tools.kit.__main__ import main
from tools.kit.make import PROGRAM, ROOT, KitError, copy_program, download_wheels, make_kit

SMALL = "# One real wheel instead of all.\n--prefer-binary\nfilelock==4.3.1\n"


@pytest.mark.embedded
@pytest.mark.slow
def test_a_kit_holds_all_it_needs_and_installs_without_an_index(tmp_path: Path) -> None:
    small = tmp_path / "requirements-cpu.txt"
    small.write_text(SMALL)
    kit = make_kit(tmp_path / "kit", ignore_progress, small)
    assert {entry.name for entry in kit.iterdir()} == {
        "README.txt", "app", "install.py", "requirements.txt", "weights", "wheels",
    }  # fmt: skip
    assert (kit / "requirements.txt").read_text() == SMALL.replace("--prefer-binary\n", "")
    assert {entry.name for entry in (kit / "app").iterdir()} == set(PROGRAM)
    assert is_intact(kit / "weights" / CACHE_NAME)
    assert not list(kit.rglob("__pycache__"))

    target = tmp_path / "installed"
    nowhere = {
        **os.environ,
        "PIP_INDEX_URL": "http://127.0.0.1:9/",
        "PIP_EXTRA_INDEX_URL": "",
        "PIP_CONFIG_FILE": os.devnull,
    }
    command = [sys.executable, str(kit / "install.py"), str(target)]
    installed = subprocess.run(command, env=nowhere, capture_output=True, text=True, check=False)
    assert installed.returncode == 0, installed.stdout + installed.stderr
    assert f"python {target / 'start.py'}" in installed.stdout
    assert is_intact(target / "cache" / CACHE_NAME)
    python = target / ".venv" / "bin" / "python"
    version = subprocess.run(
        [python, "-c", "import filelock; print(filelock.__version__)"], capture_output=True, text=True, check=True
    )
    assert version.stdout.strip() == "4.3.1"

    again = subprocess.run(command, capture_output=True, text=True, check=False)
    assert again.returncode == 1
    assert "is not empty" in again.stdout


def test_a_folder_that_is_not_empty_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "mine.txt").write_text("keep")
    with pytest.raises(KitError, match="is not empty"):
        make_kit(tmp_path, ignore_progress)
    assert main([str(tmp_path)]) == 1
    assert "is not empty" in capsys.readouterr().err
    assert [entry.name for entry in tmp_path.iterdir()] == ["mine.txt"]


def test_packages_that_cannot_be_fetched_are_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(make.sys, "executable", shutil.which("false"))  # type: ignore[attr-defined]
    with pytest.raises(KitError, match="Connect to the network and repeat"):
        download_wheels(tmp_path / "requirements.txt", tmp_path / "wheels")


NOT_IN_A_KIT = {
    ".ci", ".devcontainer", ".dockerignore", ".gitattributes", ".github", ".gitignore", ".pre-commit-config.yaml",
    "CHANGELOG.md", "CONTRIBUTING.md", "Dockerfile", "SECURITY.md", "babel.cfg", "compose.yaml", "docs",
    "requirements-dev.txt", "requirements-rocm.txt", "tests",
}  # fmt: skip


def test_everything_at_the_root_is_in_a_kit_or_named_as_left_out() -> None:
    """A new folder that the app needs must not be forgotten."""
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    roots = {line.split("/")[0] for line in listed.splitlines()}
    assert roots - NOT_IN_A_KIT == set(PROGRAM)


@pytest.mark.slow
def test_the_copied_program_imports_nothing_that_was_left_out(tmp_path: Path) -> None:
    copy_program(tmp_path)
    pages = [f"views.{file.stem}" for file in (ROOT / "views").glob("*.py") if file.stem != "__init__"]
    pages += [
        f"views.{file.parent.name}.{file.stem}" for file in (ROOT / "views").glob("*/*.py") if file.stem[0] != "_"
    ]
    program = f"import app, tools.doctor.checks, tools.recorder, engine.serve.__main__, {', '.join(sorted(pages))}"
    program += "; print(app.__file__)"
    run = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert run.stdout.strip() == str(tmp_path / "app.py"), run.stderr
