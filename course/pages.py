"""Every page of the app in reading order: lessons and experiments found in their folders, all others recorded here."""

from __future__ import annotations

import pkgutil
from importlib import import_module
from importlib.util import find_spec

import course
from course.lesson import CoursePage, Lesson
from engine.i18n import N_, _

HOME = CoursePage(
    order=0,
    title=N_("Start here"),
    short_name=N_("Start here"),
    section="learn",
    icon=":material/home:",
    url_path=None,
    promise=N_("What this is, and where to begin."),
)
SUMMARY = CoursePage(
    order=80,
    title=N_("What you can now explain"),
    short_name=N_("Summary"),
    section="learn",
    icon=":material/menu_book:",
    url_path="summary",
    promise=N_("The seven ideas and what you did, to print; details, a glossary with older names, and the sources."),
    minutes={90: 2},
    has_picture=False,
)
LIVE_ENGINE = CoursePage(
    order=90,
    title=N_("Live engine"),
    short_name=N_("Live engine"),
    section="try",
    icon=":material/memory:",
    url_path="live_engine",
    promise=N_("Type a prompt, step a real model token by token, and watch its block table fill."),
    minutes={15: 4, 45: 10, 90: 9},
    is_live=True,
)
PAPER = CoursePage(
    order=155,
    title=N_("The paper, reproduced"),
    short_name=N_("The paper"),
    section="lab",
    icon=":material/article:",
    url_path="paper",
    promise=N_(
        "Every claim of the PagedAttention paper about memory, its numbers beside ours, and whether it holds here."
    ),
    has_picture=False,
)
OPEN_TRACE = CoursePage(
    order=160,
    title=N_("Open a trace"),
    short_name=N_("Open a trace"),
    section="tools",
    icon=":material/folder_open:",
    url_path="open_trace",
    promise=N_("Open a saved run, yours or somebody else's: the same map and the same tables at every step."),
)
REMOTE_SERVER = CoursePage(
    order=170,
    title=N_("Attach to a server"),
    short_name=N_("Attach"),
    section="tools",
    icon=":material/lan:",
    url_path="remote_server",
    promise=N_(
        "Connect to a running vLLM or SGLang server, or open a recorded stream: which prefixes are cached and evicted."
    ),
    is_live=True,
)
DECODE_LOG = CoursePage(
    order=172,
    title=N_("Decode a server's log"),
    short_name=N_("Decode a log"),
    section="tools",
    icon=":material/receipt_long:",
    url_path="decode_log",
    promise=N_(
        "Paste what vLLM or SGLang printed: every line about memory explained, with the setting that changes it."
    ),
    has_picture=False,
)
CAPACITY = CoursePage(
    order=174,
    title=N_("What fits on your GPU?"),
    short_name=N_("Capacity"),
    section="tools",
    icon=":material/calculate:",
    url_path="capacity",
    promise=N_("Model, GPU, precision and users: how many tokens and requests fit, and what runs out first."),
    has_picture=False,
)
TRAFFIC = CoursePage(
    order=176,
    title=N_("What would your traffic hit?"),
    short_name=N_("Your traffic"),
    section="tools",
    icon=":material/query_stats:",
    url_path="traffic",
    promise=N_(
        "Prompts or a trace: the prefix-cache hit rate by the size of the pool, and what a system prompt costs."
    ),
    has_picture=False,
)
READY = CoursePage(
    order=180,
    title=N_("Is this machine ready?"),
    short_name=N_("Ready?"),
    section="tools",
    icon=":material/health_and_safety:",
    url_path="ready",
    promise=N_(
        "For instructors: checks packages, model, memory and browser before the course, with a fix for each problem."
    ),
    has_picture=False,
)
ROOM = CoursePage(
    order=190,
    title=N_("Room"),
    short_name=N_("Room"),
    section="tools",
    icon=":material/groups:",
    url_path="room",
    promise=N_("A whole group on one engine: join with a code, follow the presenter, send prompts into one batch."),
    is_live=True,
)


def find_lessons() -> tuple[Lesson, ...]:
    """The `LESSON` of every folder of the course with a `lesson.py`, by `order`."""
    folders = [
        m.name for m in pkgutil.iter_modules(course.__path__) if m.ispkg and find_spec(f"course.{m.name}.lesson")
    ]
    lessons: list[Lesson] = [import_module(f"course.{folder}.lesson").LESSON for folder in folders]
    return tuple(sorted(lessons, key=lambda lesson: lesson.order))


def lesson_number(page: CoursePage) -> int | None:
    """1 to the number of lessons; None of a page that is no lesson."""
    return LESSONS.index(page) + 1 if page in LESSONS else None


def lesson_by_key(key: str) -> Lesson:
    """The lesson or experiment of that key. Raises ValueError when there is none."""
    for lesson in (*LESSONS, *EXPERIMENTS):
        if lesson.key == key:
            return lesson
    keys = ", ".join(lesson.key for lesson in (*LESSONS, *EXPERIMENTS))
    raise ValueError(_("The lesson must be one of {keys}; it is {key!r}.").format(keys=keys, key=key))


_FOUND = find_lessons()
LESSONS = tuple(lesson for lesson in _FOUND if lesson.section == "learn")
EXPERIMENTS = tuple(lesson for lesson in _FOUND if lesson.section == "lab")
COURSE: tuple[CoursePage, ...] = tuple(
    sorted(
        (
            *(HOME, SUMMARY, LIVE_ENGINE, PAPER, OPEN_TRACE, REMOTE_SERVER, DECODE_LOG, CAPACITY, TRAFFIC, READY, ROOM),
            *_FOUND,
        ),
        key=lambda page: page.order,
    )
)
"""Every page, as the navigation lists them."""
