"""The memory map's own script carries the translations of its texts, and only of its own."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.i18n import install, plural_rule
from tests.helpers.pseudo_language import catalogue_of
from views.browser.assets import script_catalogue
from views.memory_map.assets import map_js

ASSETS = Path(__file__).resolve().parents[2] / "assets"


@pytest.fixture(autouse=True)
def english_again() -> Iterator[None]:
    yield
    install("")


def test_the_map_carries_its_texts_and_only_its_own(tmp_path: Path) -> None:
    assert map_js().startswith("const CATALOGUE = {};\nconst PLURAL_FORM = (n) => Number(n != 1);\n")
    install(str(catalogue_of({"Play": "</script>Los", "Block size": "Blockgröße"}, tmp_path / "de.mo")))
    first = map_js().partition("\n")[0]
    assert first == r'const CATALOGUE = {"Play": "\u003c/script>Los"};'
    assert json.loads(first.removeprefix("const CATALOGUE = ").removesuffix(";")) == {"Play": "</script>Los"}


def test_the_map_counts_in_all_forms_of_a_language(tmp_path: Path) -> None:
    polish = {("{n} event", "{n} events"): ("{n} zdarzenie", "{n} zdarzenia", "{n} zdarzeń")}
    install(str(catalogue_of(polish, tmp_path / "pl.mo", "pl")))
    assert script_catalogue('_("x"), ngettext("{n} event", "{n} events", 3)') == {
        "{n} event": ["{n} zdarzenie", "{n} zdarzenia", "{n} zdarzeń"]
    }
    assert map_js().splitlines()[1] == f"const PLURAL_FORM = (n) => Number({plural_rule()});"
    assert plural_rule().startswith("n == 1 ? 0 : n % 10 >= 2")


def test_scripts_pass_only_literals_to_gettext() -> None:
    scripts = "\n".join(file.read_text("utf-8") for file in ASSETS.rglob("*.js"))
    calls = re.findall(r"(?<!function )\b(?:_|ngettext)\(([^,)])", scripts)
    assert len(calls) > 110
    assert [first for first in calls if first != '"'] == []
