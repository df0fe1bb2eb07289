"""A pytest plugin: one line of JSON for each test as soon as it is over, so that an ended run leaves what it knew."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pytest

FILE_VARIABLE = "GPU_DAY_TEST_LOG"
_config: pytest.Config | None = None


def pytest_configure(config: pytest.Config) -> None:
    global _config
    _config = config


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.when == "call" or report.outcome != "passed":
        _write(report.nodeid, report.outcome, report.longrepr)


def pytest_collectreport(report: pytest.CollectReport) -> None:
    if report.outcome == "failed":
        _write(report.nodeid, "not collected", report.longrepr)


def _write(test: str, outcome: str, longrepr: Any) -> None:
    if hasattr(_config, "workerinput"):  # pytest-xdist: the process that started this one hears of it, too
        return
    with open(os.environ[FILE_VARIABLE], "a", encoding="utf-8") as file:
        file.write(json.dumps({"test": test, "outcome": outcome, "error": _in_a_line(longrepr)}) + "\n")


def _in_a_line(longrepr: Any) -> str:
    """A skip is (file, line, reason); an error says what happened in its last lines that begin with E."""
    if longrepr is None:
        return ""
    if isinstance(longrepr, tuple):
        return str(longrepr[2])
    lines = str(longrepr).strip().splitlines()
    errors = [line[1:].strip() for line in lines if line.startswith("E ")]
    return (errors or lines)[0] if errors or lines else ""
