"""Files of assets/ as text, and what scripts share: texts in the server's language (`_("Play")`), and connections."""

from __future__ import annotations

import json
import re
from gettext import c2py
from pathlib import Path

from engine.i18n import _, ngettext, plural_rule

_ASSETS = Path(__file__).resolve().parents[2] / "assets"
_TEXT = r'("(?:[^"\\]|\\.)*")'
_ONE_TEXT = re.compile(rf"\b_\({_TEXT}")
_COUNTED = re.compile(rf"\bngettext\({_TEXT}, {_TEXT}")
LARGEST_TRIED = 200
"""Counts up to this one are tried to find every plural form of a language."""


def read_assets(*patterns: str) -> str:
    """The text of files of assets/, joined; those that a pattern names in name order. Raises FileNotFoundError."""
    found = [sorted(_ASSETS.glob(pattern)) for pattern in patterns]
    if not all(found):
        raise FileNotFoundError(f"not in {_ASSETS}: {patterns}")
    return "\n".join(path.read_text(encoding="utf-8") for paths in found for path in paths)


def with_texts(script: str) -> str:
    """The script below `_`, `ngettext` and the translations of its texts, none for English."""
    catalogue = json.dumps(script_catalogue(script)).replace("<", "\\u003c")  # nothing in it closes a script
    head = f"const CATALOGUE = {catalogue};\nconst PLURAL_FORM = (n) => Number({plural_rule()});\n"
    return f"{head}{read_assets('gettext.js')}\n{script}"


def with_connection(script: str) -> str:
    """The script below what it asks about the tab's connection, and the WebSocket that opens itself again."""
    return f"{read_assets('connection.js')}\n{script}"


def script_catalogue(script: str) -> dict[str, str | list[str]]:
    """The translations of the script's texts, by the English text; the forms of those that count, by the first one."""
    texts = {text: _(text) for text in map(json.loads, _ONE_TEXT.findall(script))}
    pairs = [tuple(map(json.loads, pair)) for pair in _COUNTED.findall(script)]
    counted = {one: _forms(one, many) for one, many in pairs if not {one, many}.issuperset(_forms(one, many))}
    return {text: other for text, other in texts.items() if other != text} | counted


def _forms(one: str, many: str) -> list[str]:
    """The text's plural forms, by the number of the form."""
    form_of = c2py(plural_rule())
    forms = {form_of(n): ngettext(one, many, n) for n in range(LARGEST_TRIED)}
    return [forms[number] for number in sorted(forms)]
