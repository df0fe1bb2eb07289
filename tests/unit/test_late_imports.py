"""What charts need is not imported with the app, and is soon after the first page: before anybody opens a chart."""

from __future__ import annotations

import subprocess
import sys

from tests.helpers.app_server import ROOT

PROGRAM = """
import sys
import app
from tests.helpers.waiting import until
from views import late_imports
print(sorted(name for name in late_imports.HEAVY if name in sys.modules))
late_imports.SECONDS_FOR_THE_FIRST_PAGE = 0
app.import_what_is_heavy_soon()
app.import_what_is_heavy_soon()
until(lambda: all(name in sys.modules for name in late_imports.HEAVY), 60)
print(late_imports.import_what_is_heavy_soon.cache_info().misses)
"""


def test_what_is_heavy_comes_after_the_first_page_and_before_it_is_asked_for() -> None:
    run = subprocess.run([sys.executable, "-c", PROGRAM], cwd=ROOT, capture_output=True, text=True, check=False)
    assert run.stdout.split() == ["[]", "1"], run.stderr
