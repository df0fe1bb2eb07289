"""What axe finds on a page."""

from __future__ import annotations

from typing import Any

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page

from tests.helpers.waiting import until_equal

STREAMLITS_OWN = {"presentation-role-conflict": "stFileUploaderDropzone"}
"""Faults in markup that Streamlit writes and pages cannot change: the rule, and the element it is about."""


def violations_of(page: Page) -> list[dict[str, Any]]:
    violations: list[dict[str, Any]] = Axe().run(page).response["violations"]
    found = [{"id": v["id"], "help": v["help"], "nodes": _nodes_of_ours(v)} for v in violations]
    return [violation for violation in found if violation["nodes"]]


def expect_no_violations(page: Page) -> None:
    """Judged once more while something is found: a page that still fades in is paler than it will be."""
    until_equal(lambda: violations_of(page), [])


def _nodes_of_ours(violation: dict[str, Any]) -> list[str]:
    own = STREAMLITS_OWN.get(violation["id"])
    return [node["html"][:300] for node in violation["nodes"] if own is None or own not in node["html"]]
