"""The functions of gettext as engine, course and views call them."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from course.messages import Message, Percent, Plural, field_names, fill
from engine.i18n import LANGUAGE_VARIABLE, N_, _, counted, install, ngettext
from tests.helpers.pseudo_language import catalogue_of, pseudo, untranslated

GERMAN = {
    "Block size": "Blockgröße",
    "{free} of {all} are free.": "Von {all} sind {free} frei.",
    ("{n} slot", "{n} slots"): ("{n} Platz", "{n} Plätze"),
    ("{n} slot of {all} is free.", "{n} slots of {all} are free."): ("Frei: {n} Platz.", "Frei: {n} Plätze von {all}."),
}
POLISH = {("{n} token", "{n} tokens"): ("{n} token", "{n} tokeny", "{n} tokenów")}


@pytest.fixture(autouse=True)
def english_again(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(logging.getLogger("engine"), "propagate", True)
    yield
    install("")


def speak(texts: dict, folder: Path, locale: str = "de") -> None:
    install(str(catalogue_of(texts, folder / f"{locale}.mo", locale)))


def test_without_a_catalogue_texts_are_english() -> None:
    install("en")
    assert _("Block size") == N_("Block size") == "Block size"
    assert _("") == ""
    assert [counted("{n} slot", "{n} slots", n) for n in (0, 1, 2048)] == ["0 slots", "1 slot", "2,048 slots"]
    assert counted("{n} slot of {all} is free.", "{n} slots of {all} are free.", 1, all=4) == "1 slot of 4 is free."


def test_another_language_orders_fields_and_uses_its_plural_forms(tmp_path: Path) -> None:
    speak(GERMAN, tmp_path)
    assert _("Block size") == "Blockgröße"
    assert _("") == ""
    assert _("{free} of {all} are free.").format(free=counted("{n} slot", "{n} slots", 1), all=8) == (
        "Von 8 sind 1 Platz frei."
    )
    assert counted("{n} slot of {all} is free.", "{n} slots of {all} are free.", 3, all=8) == "Frei: 3 Plätze von 8."
    assert _("A text that nobody translated.") == "A text that nobody translated."


def test_a_language_may_have_more_than_two_forms(tmp_path: Path) -> None:
    speak(POLISH, tmp_path, "pl")
    told = [counted("{n} token", "{n} tokens", n) for n in (1, 3, 5, 12, 22)]
    assert told == ["1 token", "3 tokeny", "5 tokenów", "12 tokenów", "22 tokeny"]


def test_a_message_is_translated_when_it_is_filled(tmp_path: Path) -> None:
    text = Message(N_("{free} of {all} are free."), free=Plural("waste.free", "{n} slot", "{n} slots"))
    facts = {"waste": Waste(free=3, percent=99.7), "all": 8}
    assert fill(text, facts) == "3 slots of 8 are free."
    assert field_names(text) == ["waste.free", "all"]
    speak(GERMAN, tmp_path)
    assert fill(text, facts) == "Von 8 sind 3 Plätze frei."
    assert fill(Plural("waste.free", "{n} slot of {all} is free.", "{n} slots of {all} are free."), facts) == (
        "Frei: 3 Plätze von 8."
    )
    assert fill("Block size", facts) == "Blockgröße"
    with pytest.raises(KeyError, match="most"):
        fill(N_("{most} at most"), facts)


class Waste:
    def __init__(self, free: int, percent: float) -> None:
        self.free, self.percent = free, percent


@pytest.mark.parametrize(
    ("other", "why"),
    [
        ("{gone} frei", "'{gone} frei' has a field that '{free} are free' lacks: gone. It stays English."),
        ("{free frei", "The braces of '{free frei' do not pair up. It stays English."),
        ("{free} frei", None),
        ("frei", None),
    ],
)
def test_a_translation_that_cannot_be_filled_is_logged_once_and_stays_english(
    other: str, why: str | None, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    speak({"{free} are free": other}, tmp_path)
    with caplog.at_level(logging.WARNING):
        told = {_("{free} are free") for _again in range(2)}
    assert told == ({"{free} are free"} if why else {other})
    assert [record.message for record in caplog.records] == ([why] if why else [])


def test_a_form_that_cannot_be_filled_stays_english(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    speak({("{n} block", "{n} blocks"): ("{n} Block", "{m} Blöcke")}, tmp_path)
    with caplog.at_level(logging.WARNING):
        assert [counted("{n} block", "{n} blocks", n) for n in (1, 2)] == ["1 Block", "2 blocks"]
    assert len(caplog.records) == 1


@pytest.mark.parametrize("content", [None, b"", b"no catalogue", b"\xde\x12\x04\x95\x00"])
def test_an_unreadable_catalogue_is_logged_and_texts_are_english(
    content: bytes | None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "xx.mo"
    if content is not None:
        file.write_bytes(content)
    monkeypatch.setenv(LANGUAGE_VARIABLE, str(file))
    with caplog.at_level(logging.WARNING):
        install()
        assert ngettext("{n} slot", "{n} slots", 2) == "{n} slots"
    [record] = caplog.records
    assert str(file) in record.message and record.message.endswith("Texts are in English.")


def test_untranslated_texts_are_detected() -> None:
    assert untranslated(pseudo("Blocks of {n}") + " and more").split() == ["and", "more"]
    assert len(pseudo("Reserved")) >= 1.4 * len("Reserved")


@pytest.mark.parametrize(
    ("share", "text"),
    [
        (Percent("value"), {100 * 2047 / 2048: "99.9 %", 99.6: "99.6 %", 100.0: "100 %", 0.0: "0 %", 0.3: "0.3 %"}),
        (Percent("value"), {0.001: "0.1 %", 56.25: "56 %", 220.0: "220 %"}),
        (Percent("value", decimals=1), {99.97: "99.97 %"}),
        (Percent("value", of_one=True), {1 / 2048: "0.1 %"}),
        (Percent("value", decimals=1, of_one=True), {0.365: "36.5 %"}),
    ],
)
def test_a_percentage_is_not_rounded_to_0_or_100(share: Percent, text: dict[float, str]) -> None:
    assert {value: fill(share, {"value": value}) for value in text} == text
