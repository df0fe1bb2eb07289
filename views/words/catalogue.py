"""A language as one JSON file: which form a count takes, and each English text with its translation.

    {"plural": "n != 1", "words": {"Block size": "Blockgröße", "slot|slots": "Platz|Plätze", ...}}

`plural` is gettext's formula: from the count `n` to the number of the form, 0 first.
"""

from __future__ import annotations

import gettext
import json
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

WORDS = Path(__file__).resolve().parents[2] / "assets" / "words"
TWO_FORMS = "n != 1"


class CatalogueError(ValueError):
    """A catalogue cannot be read. The message is one plain sentence."""


@dataclass(frozen=True)
class Catalogue:
    """`words`: English -> translation. `form_of`: the number of the form that a count takes."""

    words: Mapping[str, str]
    form_of: Callable[[int], int]

    def without(self, english: Collection[str]) -> Catalogue:
        """The catalogue without the translations of these texts."""
        return Catalogue({key: text for key, text in self.words.items() if key not in english}, self.form_of)


def read_catalogue(name: str) -> Catalogue:
    """`de` is `assets/words/de.json`; what ends in `.json` is a file. Raises CatalogueError."""
    file = Path(name) if name.endswith(".json") else WORDS / f"{name}.json"
    try:
        return _catalogue(json.loads(file.read_text("utf-8")))
    except OSError:
        raise CatalogueError(f"There are no words in the language {name!r}: {file} cannot be read.") from None
    except ValueError as error:
        raise CatalogueError(f"{file} is no catalogue of words: {error}.") from None


def catalogue_text(words: Mapping[str, str], plural: str = TWO_FORMS) -> str:
    """The file's text."""
    return json.dumps({"plural": plural, "words": dict(words)}, ensure_ascii=False, indent=1) + "\n"


def _catalogue(read: Any) -> Catalogue:
    words = read.get("words") if isinstance(read, dict) else None
    if not isinstance(words, dict) or not all(isinstance(value, str) for value in words.values()):
        raise ValueError('it needs "words", from English to the other language')
    return Catalogue(words, gettext.c2py(read.get("plural", TWO_FORMS)))
