"""The language of this server's lessons: English, or the one of the catalogue that PAGED_KV_LANGUAGE names.

    PAGED_KV_LANGUAGE=de streamlit run app.py             assets/words/de.json
    PAGED_KV_LANGUAGE=my/words.json streamlit run app.py  a catalogue that lies elsewhere

One language a server, chosen before it starts: pictures are made once for all tabs. English text is the key; what a
catalogue does not know stays English. docs/translating.md says how to make one; `python -m views.words` helps.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from engine.said import ENGLISH, Teller
from views.words.catalogue import CatalogueError, read_catalogue
from views.words.language import Language, faults

LANGUAGE_VARIABLE = "PAGED_KV_LANGUAGE"
LOG = logging.getLogger(__name__)


@lru_cache(maxsize=1)
def language() -> Teller:
    """Who says the words here. A catalogue that cannot be read leaves them English, and the log says why."""
    name = os.environ.get(LANGUAGE_VARIABLE, "")
    if name in ("", "en"):
        return ENGLISH
    try:
        catalogue = read_catalogue(name)
    except CatalogueError as error:
        LOG.warning("%s The lessons are in English.", error)
        return ENGLISH
    faulty = faults(catalogue.words)
    for fault in faulty.values():
        LOG.warning("%s It stays English.", fault)
    return Language(catalogue.without(faulty))


def translated(text: str) -> str:
    """Text of the course as this server says it; other text as it is."""
    return language().say(text)


def filled(template: str, facts: Mapping[str, Any]) -> str:
    """The template as this server says it, with its fields filled in. Raises KeyError for a field nobody counted."""
    return language().fill(template, facts)
