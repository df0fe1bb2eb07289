"""What a bug report begins with: the version that the changelog has, and nothing of the person who sends it."""

from __future__ import annotations

import getpass
import re
import socket
from pathlib import Path

import pytest

from tests.helpers.app_server import ROOT
from tools import about


def test_the_version_is_the_one_that_the_changelog_begins_with() -> None:
    changelog = (ROOT / "CHANGELOG.md").read_text("utf-8")
    [newest, *_older] = re.findall(r"^## (\S+), ", changelog, re.MULTILINE)
    assert about.app_version() == newest


def test_it_names_versions_and_settings_but_no_values(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PAGED_KV_HOSTS", "secret.example")
    assert about.main() == 0
    printed = capsys.readouterr().out
    lines = dict(line.split(None, 1) for line in printed.splitlines())
    assert list(lines) == ["version", "python", "system", "packages", "backend", "settings"]
    assert lines["version"].startswith(about.app_version()) and "streamlit 1." in lines["packages"]
    assert "PAGED_KV_HOSTS" in lines["settings"]
    assert re.match(r"\w+ on (cpu|cuda): ", lines["backend"])
    for private in ("secret.example", socket.gethostname(), str(Path.home()), f" {getpass.getuser()} "):
        assert private not in printed


def test_a_missing_package_is_said_to_be_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(about, "PACKAGES", ("no-such-package", "numpy"))
    packages = dict(about.about())["packages"]
    assert packages.startswith("no-such-package missing, numpy ")
