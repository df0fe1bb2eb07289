"""Texts in the language of this process, by gettext: English, or the catalogue that PAGED_KV_LANGUAGE names.

    PAGED_KV_LANGUAGE=de streamlit run app.py                 locale/de/LC_MESSAGES/messages.mo
    PAGED_KV_LANGUAGE=my/messages.mo streamlit run app.py     a compiled catalogue that lies elsewhere

    _("Block size")                                           a text
    _("{name} starts.").format(name=name)                     with facts
    counted("{n} block", "{n} blocks", 3)                     3 blocks
    TITLE = N_("Block size")  ...  _(TITLE)                   marked where it stands, translated where it is shown

The language is read once, when the first text is asked for. What a catalogue lacks stays English.
docs/translating.md says how a catalogue is made.
"""

from __future__ import annotations

import gettext as gettext_module
import logging
import os
import struct
from functools import lru_cache
from pathlib import Path
from string import Formatter
from typing import Any

LANGUAGE_VARIABLE = "PAGED_KV_LANGUAGE"
LOCALE = Path(__file__).resolve().parents[2] / "locale"
DOMAIN = "messages"
LOG = logging.getLogger(__name__)

_ENGLISH = gettext_module.NullTranslations()
_translations: gettext_module.NullTranslations | None = None


def install(language: str | None = None) -> None:
    """Use this language from now on: a folder of `locale/`, or a file ending in `.mo`; `""` or `"en"`: English.

    None asks the environment variable PAGED_KV_LANGUAGE. A catalogue that cannot be read leaves the texts English, and
    the log says why.
    """
    global _translations
    name = os.environ.get(LANGUAGE_VARIABLE, "") if language is None else language
    _translations = _ENGLISH if name in ("", "en") else _read(name)


def translations() -> gettext_module.NullTranslations:
    """The catalogue in use."""
    if _translations is None:
        install()
    assert _translations is not None
    return _translations


def _(message: str) -> str:
    """The text in this language; English where the catalogue lacks it or its fields cannot be filled."""
    catalogue = _translations or translations()
    if catalogue is _ENGLISH or not message:
        return message
    text = catalogue.gettext(message)
    return text if text is message else _fillable(text, message, message)


def ngettext(one: str, many: str, n: int) -> str:
    """The form of the text that the count `n` takes. `many` has every field that a form may have, and `{n}`."""
    catalogue = _translations or translations()
    if catalogue is _ENGLISH:
        return one if n == 1 else many
    text = catalogue.ngettext(one, many, n)
    return text if text is one or text is many else _fillable(text, one if n == 1 else many, many)


def counted(one: str, many: str, n: int, **facts: Any) -> str:
    """`counted("{n} block", "{n} blocks", 2048)`: `2,048 blocks`. `{n}` is the count; other fields are the facts'."""
    return ngettext(one, many, n).format(**facts | {"n": f"{n:,}"})


def blocks_counted(n: int) -> str:
    """`3 blocks`."""
    return counted("{n} block", "{n} blocks", n)


def slots_counted(n: int) -> str:
    """`3 slots`."""
    return counted("{n} slot", "{n} slots", n)


def tokens_counted(n: int) -> str:
    """`3 tokens`."""
    return counted("{n} token", "{n} tokens", n)


def plural_rule() -> str:
    """The catalogue's rule for plural forms, an expression in C (and in JavaScript): from the count `n` to the form."""
    head = translations().info().get("plural-forms", "")
    return head.rpartition("plural=")[2].strip(" ;") or "n != 1"


def N_(message: str) -> str:  # noqa: N802, the name that gettext's tools look for
    """Marks a text for translation and returns it as it is."""
    return message


@lru_cache(maxsize=4096)
def _fillable(text: str, english: str, template: str) -> str:
    """The translation, or English when it has fields that the template lacks. The log says so, once for each text."""
    try:
        unknown = _fields(text) - _fields(template)
    except ValueError:
        LOG.warning("The braces of %r do not pair up. It stays English.", text)
        return english
    if unknown:
        LOG.warning("%r has a field that %r lacks: %s. It stays English.", text, template, ", ".join(sorted(unknown)))
        return english
    return text


def _fields(template: str) -> set[str]:
    return {name for _words, name, _spec, _conversion in Formatter().parse(template) if name is not None}


def _read(name: str) -> gettext_module.NullTranslations:
    file = Path(name) if name.endswith(".mo") else LOCALE / name / "LC_MESSAGES" / f"{DOMAIN}.mo"
    try:
        with file.open("rb") as opened:
            return gettext_module.GNUTranslations(opened)
    except OSError:
        LOG.warning("There is no catalogue of the language %r: %s cannot be read. Texts are in English.", name, file)
    except (ValueError, struct.error) as error:
        LOG.warning("%s is no compiled catalogue (%s). Texts are in English.", file, error)
    return _ENGLISH
