"""The record of a page, and of a lesson: navigation, routes, the summary, questions and sliders are derived from it.

A lesson or an experiment is a folder `course/<name>/` whose `lesson.py` defines `LESSON`. `course/pages.py` finds it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from importlib import import_module
from random import Random
from typing import Literal

from course.question import Question, QuestionKind, finish

Section = Literal["learn", "try", "lab", "tools"]
"""Where a page stands in the navigation."""


@dataclass(frozen=True, kw_only=True, eq=False)
class CoursePage:
    """A page of the app. Its script is `pages/<url_path>.py`.

    order: its place in the navigation, rising; numbers leave gaps for pages to come.
    short_name: what the navigation calls it; of a lesson also the heading of its question on an exercise sheet.
    section: its part of the navigation.
    icon: a Material icon by the name that Streamlit gives it.
    url_path: the address; None is the page that the app opens with, `pages/home.py`.
    promise: what a reader gets, in a sentence.
    minutes: the time it takes on a route, by the route's length (`course/routes.py`); a page may be on none.
    has_picture: whether there is something to present. is_live: its picture grows while it is shown.
    """

    order: int
    title: str
    short_name: str
    section: Section
    icon: str
    url_path: str | None
    promise: str
    minutes: Mapping[int, int] = field(default_factory=dict)
    has_picture: bool = True
    is_live: bool = False

    @property
    def file(self) -> str:
        """The script, relative to app.py."""
        return f"pages/{self.url_path or 'home'}.py"


@dataclass(frozen=True, kw_only=True, eq=False)
class Lesson(CoursePage):
    """A page that teaches one idea and asks about it: a lesson (section "learn"), or an experiment of the lab.

    Its folder is `course/<url_path>/`, with its questions in `questions.py`.

    url_path: as of every page; a lesson always has one.
    key: names its controls and seeds its questions. Links depend on it, so it never changes.
    sliders: the name of each slider in the address -> its label.
    explains: what a reader can explain after it, as the last page lists it.
    summary: makes its line of that page, every number counted from the lesson's scene. None: it has none.
        It imports the scene when it is called: scenes bring torch, which navigation does without.
    """

    url_path: str
    key: str
    sliders: Mapping[str, str] = field(default_factory=dict)
    explains: str = ""
    summary: Callable[[], str] | None = None

    @property
    def question_kinds(self) -> tuple[QuestionKind, ...]:
        """`KINDS` of the folder's `questions.py`."""
        kinds: tuple[QuestionKind, ...] = import_module(f"course.{self.url_path}.questions").KINDS
        return kinds

    def question(self, seed: int) -> Question:
        """The question of that seed, always the same one. Neighbouring seeds ask different kinds in turn."""
        return _question(self, seed)


@lru_cache(maxsize=64)
def _question(lesson: Lesson, seed: int) -> Question:
    random = Random(f"{lesson.key}/{seed}")
    kinds = lesson.question_kinds
    return finish(lesson.key, seed, kinds[seed % len(kinds)](random), random)
