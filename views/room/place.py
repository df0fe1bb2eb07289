"""Where the presenter is: a page of the course and the values in its address, as their browser tells it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl, urlencode

from course.pages import COURSE

LONGEST_QUERY = 4_000
MAX_VALUES = 40
PRIVATE = ("room", "follow", "engine", "run")
"""Names in an address that are one tab's own. `engine` is the key to a live engine: it must not leave its tab."""


@dataclass(frozen=True)
class Place:
    """`path`: the page's address, "" for Home. `query`: the values, encoded."""

    path: str
    query: str = ""


def place_from(reported: Any) -> Place | None:
    """What a browser said, checked: `{"path": "batch", "query": "requests=3"}`. None when it is no page of ours."""
    if not isinstance(reported, dict):
        return None
    path, query = reported.get("path"), reported.get("query", "")
    if not isinstance(path, str) or not isinstance(query, str) or len(query) > LONGEST_QUERY:
        return None
    if path not in {page.url_path or "" for page in COURSE}:
        return None
    try:
        values = parse_qsl(query, keep_blank_values=True, max_num_fields=MAX_VALUES)
    except ValueError:
        return None
    return Place(path, urlencode([(name, value) for name, value in values if name not in PRIVATE]))
