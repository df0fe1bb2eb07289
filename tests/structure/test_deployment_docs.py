"""What the pages about deployment say is what files and source have; and what the README's first screen has."""

from __future__ import annotations

import json
import re
from pathlib import Path

from tests.structure.test_readme import README, START, TEST
from views.server.security import FRAMES_VARIABLE, HOSTS_VARIABLE, METRICS_VARIABLE

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ("app.py", "pages", "views", "course", "engine", "kernels", "tools")


def text(*path: str) -> str:
    return ROOT.joinpath(*path).read_text("utf-8")


def settings_in_the_source() -> set[str]:
    files = [file for name in SOURCE for file in [ROOT / name, *(ROOT / name).rglob("*.py")] if file.is_file()]
    return {name for file in files for name in re.findall(r"PAGED_KV_[A-Z_]*[A-Z]", file.read_text("utf-8"))}


def settings_in_the_table(document: str) -> set[str]:
    rows = [line for line in document.splitlines() if line.startswith("| `")]
    return {name for row in rows for name in re.findall(r"PAGED_KV_[A-Z_]*[A-Z]", row.split("|")[1])}


def test_every_setting_is_explained_and_what_it_opens_is_said() -> None:
    settings = settings_in_the_source()
    assert {HOSTS_VARIABLE, FRAMES_VARIABLE, METRICS_VARIABLE} <= settings
    assert settings_in_the_table(text("docs", "deploying.md")) == settings
    assert settings_in_the_table(text("SECURITY.md")) == settings


def test_the_readmes_first_screen_is_its_picture_and_three_commands() -> None:
    first = README.split("\n## ")[0]
    assert re.findall(r"```\w+\n(.*?)\n```", first, re.DOTALL) == [
        START,
        TEST,
        "python -m tools.site FOLDER        the lessons as HTML files that play without a server",
    ]
    assert len(re.findall(r"!\[[^\]]+\]\([^)]+\)", first)) == 1
    assert len([line for line in first.splitlines() if line]) <= 14


def test_hosted_services_are_told_the_port_and_the_packages_of_the_container() -> None:
    dockerfile = text("Dockerfile")
    [port] = re.findall(r"^EXPOSE (\d+)$", dockerfile, re.MULTILINE)
    assert "useradd --create-home --uid 1000 app" in dockerfile, "the user that Spaces start a container as"
    assert f"\nsdk: docker\napp_port: {port}\n" in text("docs", "space", "README.md")
    codespace = json.loads(text(".devcontainer", "devcontainer.json"))
    assert codespace["forwardPorts"] == [int(port)] and list(codespace["portsAttributes"]) == [port]
    assert codespace["updateContentCommand"] == "pip install -r requirements-cpu.txt"
    assert codespace["postAttachCommand"] == "streamlit run app.py"
    assert f"app:{port};" in text("docs", "nginx.conf")


def test_colab_gets_the_versions_that_are_pinned() -> None:
    [packages] = re.findall(r"pip install -q (.+)$", text("docs", "hosted.md"), re.MULTILINE)
    assert set(packages.split()) <= set(text("requirements.txt").split())
