"""Settings of the process: full collections happen in long pauses, heavy modules are imported after the first page."""

from __future__ import annotations

import gc
import subprocess
import sys
from collections.abc import Iterator

import pytest

from tests.helpers.app_server import ROOT
from views.server.process import COLLECTION_SECONDS, collect_garbage_if_due


@pytest.fixture(autouse=True)
def no_collection_by_itself() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def age(times: int) -> None:
    for _ in range(times):
        gc.collect(1)


def test_a_collection_that_is_not_due_soon_is_not_made() -> None:
    age(6)
    assert not collect_garbage_if_due(10.0)
    assert gc.get_count()[2] == 6


def test_a_collection_is_made_before_python_would() -> None:
    age(7)
    assert collect_garbage_if_due(COLLECTION_SECONDS)
    assert gc.get_count()[2] == 0


def test_a_short_pause_has_no_collection() -> None:
    age(9)
    assert not collect_garbage_if_due(0.9 * COLLECTION_SECONDS)
    assert gc.get_count()[2] == 9


PROGRAM = """
import sys
import app
from tests.helpers.waiting import until
from views.server import process
print(sorted(name for name in process.HEAVY_MODULES if name in sys.modules))
process.FIRST_PAGE_SECONDS = 0
app.import_heavy_modules_soon()
app.import_heavy_modules_soon()
until(lambda: all(name in sys.modules for name in process.HEAVY_MODULES), 60)
print(process.import_heavy_modules_soon.cache_info().misses)
"""


def test_heavy_modules_are_imported_once_and_after_the_app() -> None:
    run = subprocess.run([sys.executable, "-c", PROGRAM], cwd=ROOT, capture_output=True, text=True, check=False)
    assert run.stdout.split() == ["[]", "1"], run.stderr
