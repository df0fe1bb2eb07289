"""The README's promises: its two commands are those that are run, its example runs, what it names exists."""

from __future__ import annotations

import contextlib
import io
import re
import stat
from pathlib import Path

import pytest

from engine import Engine, EngineConfig

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text("utf-8")
CI_RUN = ROOT / ".ci" / "run"
START = "pip install -r requirements.txt && streamlit run app.py"
TEST = "pip install -r requirements-dev.txt && pytest"


def code_blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)\n```", README, re.DOTALL)


def test_the_readme_has_two_commands_and_ci_runs_the_second_as_it_stands() -> None:
    assert code_blocks("bash") == [START, TEST]
    assert f"test_command='{TEST}'\n" in CI_RUN.read_text("utf-8")
    assert CI_RUN.stat().st_mode & stat.S_IXUSR


def test_what_the_readme_points_to_exists() -> None:
    links = re.findall(r"\]\((?!http)([^)#]+)[^)]*\)", README)
    paths = links + re.findall(r"`((?:[a-z_]+/)+[a-z_]*(?:\.py)?)`", README)
    assert len(paths) >= 6
    assert [path for path in paths if not (ROOT / path).exists()] == []


def test_the_readmes_example_runs_and_describes_its_events(monkeypatch: pytest.MonkeyPatch) -> None:
    [example] = code_blocks("python")

    def tiny(config: EngineConfig) -> Engine:
        return Engine(EngineConfig(model="tiny-random", block_size=config.block_size, num_blocks=config.num_blocks))

    monkeypatch.setattr("engine.Engine", tiny, raising=False)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(example, "README.md", "exec"), {})
    assert "A takes free block 0 as its block 0." in printed.getvalue()
    assert "Request A is done" in printed.getvalue()
