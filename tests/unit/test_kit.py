"""The offline kit: what is in it, and that it installs where no package index can be asked."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from engine.kit import make
from engine.kit.__main__ import main
from engine.kit.make import PROGRAM, KitError, download_wheels, make_kit
from engine.progress import ignore_progress
from engine.weights_cache import is_intact
from engine.weights_embedded import CACHE_NAME

SMALL = "filelock==4.3.1\n"


def small_download(_requirements: Path, wheels: Path) -> None:
    """One real wheel instead of all."""
    requirements = wheels.parent / "app" / "requirements.txt"
    requirements.write_text(SMALL)
    download_wheels(requirements, wheels)


@pytest.mark.embedded
def test_a_kit_holds_all_it_needs_and_installs_without_an_index(tmp_path: Path) -> None:
    kit = make_kit(tmp_path / "kit", ignore_progress, small_download)
    assert {entry.name for entry in kit.iterdir()} == {"README.txt", "app", "install.py", "weights", "wheels"}
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


def test_a_folder_that_holds_something_is_left_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "mine.txt").write_text("keep")
    with pytest.raises(KitError, match="is not empty"):
        make_kit(tmp_path, ignore_progress)
    assert main([str(tmp_path)]) == 1
    assert "is not empty" in capsys.readouterr().err
    assert [entry.name for entry in tmp_path.iterdir()] == ["mine.txt"]


def test_packages_that_cannot_be_fetched_are_said_in_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(make.sys, "executable", shutil.which("false"))
    with pytest.raises(KitError, match="Connect to the network and repeat"):
        download_wheels(tmp_path / "requirements.txt", tmp_path / "wheels")
