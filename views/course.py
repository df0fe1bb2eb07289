"""The pages in reading order: the navigation and the map of the course are both drawn from this list."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType

from streamlit.navigation.page import StreamlitPage

from views.told import Facts, tell
from views.worded import st
from views.words import translated


@dataclass(frozen=True)
class CoursePage:
    """`file` is relative to app.py. `url_path` is the page's address; Home has none. `promise`: what a reader gets."""

    file: str
    title: str
    icon: str
    url_path: str | None
    promise: str


HOME = CoursePage("pages/home.py", "Start here", ":material/home:", None, "What this is, and where to begin.")
WHAT_IS_CACHED = CoursePage(
    "pages/what_is_cached.py",
    "What is cached",
    ":material/inventory_2:",
    "what_is_cached",
    "Keys and values of every token so far: what one token costs, and how many fit on a card.",
)
RESERVED_SPACE = CoursePage(
    "pages/reserved_space.py",
    "Reserved space can go unused",
    ":material/event_seat:",
    "reserved_space",
    "Nobody knows how long a reply will be, so a reservation keeps slots that no token ever takes.",
)
WASTE_BETWEEN = CoursePage(
    "pages/waste_between.py",
    "Waste between reservations",
    ":material/view_column:",
    "waste_between",
    "Enough slots are free, and still a request is refused: they do not lie side by side.",
)
GROWTH = CoursePage(
    "pages/growth.py",
    "Add pages as the request grows",
    ":material/note_add:",
    "growth",
    "Small blocks, taken one at a time, each when a token needs it.",
)
BLOCK_TABLE = CoursePage(
    "pages/block_table.py",
    "Keep pages in order",
    ":material/format_list_numbered:",
    "block_table",
    "Blocks lie anywhere; each request has a table of their order. Follow one token to its slot.",
)
SHARING = CoursePage(
    "pages/sharing.py",
    "Share matching prefixes",
    ":material/call_split:",
    "sharing",
    "An equal beginning is stored once, until somebody has to write into it.",
)
BATCH = CoursePage(
    "pages/batch.py",
    "Memory across a batch",
    ":material/stacks:",
    "batch",
    "Many requests in both layouts: what paging saves, and what it costs.",
)
SUMMARY = CoursePage(
    "pages/summary.py",
    "The short version",
    ":material/menu_book:",
    "summary",
    "The course in seven lines, details, a glossary with older names, and the sources.",
)
LIVE_ENGINE = CoursePage(
    "pages/live_engine.py",
    "Live engine",
    ":material/memory:",
    "live_engine",
    "Type a prompt, step a real model token by token, and watch its block table fill.",
)
OPEN_TRACE = CoursePage(
    "pages/open_trace.py",
    "Open a trace",
    ":material/folder_open:",
    "open_trace",
    "A run that was saved, yours or somebody else's: the same map, the same tables, at every step.",
)
EQUATION = CoursePage(
    "pages/equation.py",
    "The equation is unchanged",
    ":material/functions:",
    "equation",
    "Your prompts through contiguous and paged memory, side by side: the same tokens, the same logits to rounding.",
)
SHUFFLE = CoursePage(
    "pages/shuffle.py",
    "Shuffle memory, same words",
    ":material/shuffle:",
    "shuffle",
    "Move every block under a running model: with its tables nothing changes, without them the reply is garbage.",
)
SABOTAGE = CoursePage(
    "pages/sabotage.py",
    "Sabotage",
    ":material/bug_report:",
    "sabotage",
    "Break one thing in the engine, see which read went wrong, and which rule names the fault.",
)
RACE = CoursePage(
    "pages/race.py",
    "Race for memory",
    ":material/flag:",
    "race",
    "The same arrivals into four memories of one size: who must stop first, why, and where the slots went.",
)
WHY_NOT_SHARED = CoursePage(
    "pages/why_not_shared.py",
    "Why didn't these share?",
    ":material/difference:",
    "why_not_shared",
    "Two prompts of yours: the first token that differs, and the smallest edit that shares one more block.",
)
PREEMPTION = CoursePage(
    "pages/preemption.py",
    "Preemption, live",
    ":material/pause_circle:",
    "preemption",
    "Shrink the pool until a request must give its blocks back: compute them again, or swap them out and in.",
)
READY = CoursePage(
    "pages/ready.py",
    "Is this machine ready?",
    ":material/health_and_safety:",
    "ready",
    "For instructors: packages, model, memory and browser checked before the room fills, with the fix for each.",
)
REMOTE_SERVER = CoursePage(
    "pages/remote_server.py",
    "Attach to a server",
    ":material/lan:",
    "remote_server",
    "Point the app at a running vLLM or SGLang, or open a recorded stream: prefixes and evictions as they come.",
)
ROOM = CoursePage(
    "pages/room.py",
    "Room",
    ":material/groups:",
    "room",
    "A whole group on one engine: join by a code, follow the presenter, send prompts into one batch.",
)
LESSONS = (WHAT_IS_CACHED, RESERVED_SPACE, WASTE_BETWEEN, GROWTH, BLOCK_TABLE, SHARING, BATCH)
LAB = (EQUATION, SHUFFLE, SABOTAGE, RACE, WHY_NOT_SHARED, PREEMPTION)
COURSE = (HOME, *LESSONS, SUMMARY, LIVE_ENGINE, *LAB, OPEN_TRACE, REMOTE_SERVER, READY, ROOM)


def neighbours(page: CoursePage) -> tuple[CoursePage | None, CoursePage | None]:
    """The pages before and after, None at either end."""
    position = COURSE.index(page)
    before = COURSE[position - 1] if position > 0 else None
    after = COURSE[position + 1] if position + 1 < len(COURSE) else None
    return before, after


def draw_previous(page: CoursePage) -> None:
    """A link to the page before, when there is one."""
    before, _after = neighbours(page)
    if before is not None:
        draw_link(before, "Previous: **{title}**")


def draw_next(page: CoursePage) -> None:
    """A link to the page after, when there is one."""
    _before, after = neighbours(page)
    if after is not None:
        draw_link(after, "Next: **{title}**")


def draw_link(page: CoursePage, label: str = "**{title}**", facts: Facts = MappingProxyType({})) -> None:
    """A link to the page; `label` may name its `{title}` and what `facts` holds."""
    st.page_link(page.file, label=tell(label, {**facts, "title": translated(page.title)}), icon=page.icon)


def navigation_pages() -> list[StreamlitPage]:
    """For `st.navigation`: a flat list, because its sections are not valid lists for a screen reader."""
    return [
        st.Page(
            page.file, title=translated(page.title), icon=page.icon, url_path=page.url_path,
            default=page.url_path is None,
        )
        for page in COURSE
    ]
