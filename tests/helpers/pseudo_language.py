"""A made-up language, made from `locale/messages.pot`: every text is wrapped, longer by 40 % and still readable.

`⟦Slootss heeld⟧`: what stands outside of the brackets on a page was never translated.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from babel.messages.catalog import Catalog
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po

TEMPLATE = Path(__file__).resolve().parents[2] / "locale" / "messages.pot"
KEPT = re.compile(r"(\{[^}]*\}|`[^`]*`|\]\([^)]*\)|\*\*|\n- |\n)")
"""Fields, code, addresses of links and marks: no words."""
LONGER = 1.4


def pseudo(english: str) -> str:
    """The text in the made-up language. Fields and marks stay."""
    parts = KEPT.split(english)
    longer = "".join(part if i % 2 else re.sub(r"([aeiouAEIOU])", r"\1\1", part) for i, part in enumerate(parts))
    padding = "······· " * len(english)  # words of a usual length: lines can break
    return f"⟦{longer}{padding[: max(0, round(LONGER * len(english)) - len(longer) - 2)].rstrip()}⟧"


def pseudo_catalogue(folder: Path) -> Path:
    """A compiled catalogue of the made-up language, `PAGED_KV_LANGUAGE` for a server that shall speak it."""
    with TEMPLATE.open("rb") as template:
        catalogue = read_po(template, locale="en")
    for message in catalogue:
        if message.id:
            message.string = tuple(map(pseudo, message.id)) if message.pluralizable else pseudo(str(message.id))
    return compiled(catalogue, folder / "pseudo.mo")


def catalogue_of(texts: dict[Any, Any], file: Path, locale: str = "de") -> Path:
    """A compiled catalogue of these translations, by the English text; a pair and its forms where it counts."""
    catalogue = Catalog(locale=locale)
    for english, other in texts.items():
        catalogue.add(english, other)
    return compiled(catalogue, file)


def compiled(catalogue: Catalog, file: Path) -> Path:
    with file.open("wb") as opened:
        write_mo(opened, catalogue)
    return file


def untranslated(text: str) -> str:
    """What stands outside of all brackets."""
    before = None
    while before != text:
        before, text = text, re.sub(r"⟦[^⟦⟧]*⟧", " ", text)
    return text
