"""A lesson is one folder and one page: added to a copy of the app, it is found everywhere and registered nowhere."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.app_server import ROOT

LESSON = """
from course.lesson import Lesson
from engine.i18n import N_, counted

LESSON = Lesson(
    order=65, key="demo", title="A lesson from outside", short_name="Demo", section="learn", icon=":material/star:",
    url_path="demo", promise="Nothing but a test.", minutes={45: 3}, sliders={"laps": N_("Laps")},
    explains="What a test finds",
    summary=lambda: counted("{n} block in a box.", "{n} blocks in a box.", 2),
)
"""
QUESTIONS = """
from course.misconceptions import Misconception
from course.question import Draft, Wrong


def how_long(random):
    wrong = tuple(Wrong(text, "No.", Misconception.COMPRESSES) for text in ("2", "3"))
    return Draft(prompt="How long?", right="1", because="It is.", wrong=wrong)


KINDS = (how_long,)
"""
PAGE = """
from course.demo.lesson import LESSON
from views import lesson_page

lesson_page.begin(LESSON, "One idea.")
lesson_page.end(LESSON, notice=("It is found.",), paper="None")
"""
PROGRAM = """
import json
import streamlit
from streamlit.testing.v1 import AppTest

navigation, shown = streamlit.navigation, []

def watched(pages, **options):
    shown[:] = [page.url_path for page in pages]
    return navigation(pages, **options)

streamlit.navigation = watched
app = AppTest.from_file("{root}/app.py", default_timeout=60).run()
home = app.markdown.values + [element.proto.label for element in app.get("page_link")]
app.switch_page("pages/summary.py").run()
summary = [element.proto.label for element in app.get("page_link")] + app.text.values
app.switch_page("pages/demo.py").run()
page = [app.title[0].value, app.radio[0].options, [error.value for error in app.exception]]
links = [element.proto.label for element in app.get("page_link")]

from course.drill import main
from course.routes import ROUTES
from views.lesson_page import SLIDERS

routes = {{route.length: [(stop.page.title, stop.minutes) for stop in route.stops] for route in ROUTES}}
main(["--lesson", "demo"])
print(json.dumps({{"navigation": shown, "home": home, "summary": summary, "page": page, "links": links,
                   "routes": routes, "slider": SLIDERS["laps"]}}))
"""


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What the app shows with the lesson in it."""
    copy = tmp_path_factory.mktemp("app")
    for name in ("app.py", "course", "pages"):
        source = ROOT / name
        shutil.copytree(source, copy / name) if source.is_dir() else shutil.copy(source, copy)
    for name in ("engine", "kernels", "views", "assets", ".streamlit"):
        copy.joinpath(name).symlink_to(ROOT / name)
    write(copy / "course" / "demo" / "__init__.py", "")
    write(copy / "course" / "demo" / "lesson.py", LESSON)
    write(copy / "course" / "demo" / "questions.py", QUESTIONS)
    write(copy / "pages" / "demo.py", PAGE)
    program = PROGRAM.format(root=copy.as_posix())
    environment = os.environ | {"PYTHONPATH": str(copy), "PAGED_KV_MODEL": "tiny-random"}
    run = subprocess.run([sys.executable, "-c", program], cwd=copy, env=environment, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    *sheet, last = run.stdout.splitlines()
    return {"sheet": sheet, **json.loads(last)}


def write(file: Path, text: str) -> None:
    file.parent.mkdir(exist_ok=True)
    file.write_text(text, "utf-8")


def test_navigation_lists_it_by_its_order(found: dict[str, Any]) -> None:
    at = found["navigation"].index("demo")
    assert found["navigation"][at - 1 : at + 2] == ["sharing", "demo", "batch"]
    assert "**A lesson from outside**" in found["home"]
    assert "Nothing but a test." in found["home"]
    assert found["links"] == ["Previous: **Share matching prefixes**", "Next: **Memory across a batch**"]


def test_the_route_it_has_minutes_for_visits_it(found: dict[str, Any]) -> None:
    around = [["Share matching prefixes", 9], ["A lesson from outside", 3], ["Live engine", 10]]
    assert found["routes"]["45"][-3:] == around
    assert all("A lesson from outside" not in dict(found["routes"][other]) for other in ("15", "90"))
    assert "3 min: A lesson from outside" in found["home"]


def test_the_summary_has_its_line(found: dict[str, Any]) -> None:
    assert "7. **What a test finds**" in found["summary"]
    assert "8. **How paging lets more requests run at once, and what it costs**" in found["summary"]
    assert "2 blocks in a box." in found["summary"]


def test_its_page_and_the_sheet_ask_its_question(found: dict[str, Any]) -> None:
    title, options, errors = found["page"]
    assert (title, sorted(options), errors) == ("A lesson from outside", ["1", "2", "3"], [])
    assert found["sheet"][2:4] == ["1. Demo", "   How long?"]
    assert found["slider"] == "Laps"
