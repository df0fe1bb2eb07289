"""The words of the lessons: the catalogue is what the source says, and another language fills its own templates."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.questions import LESSONS, Question, question
from engine.said import Said, said
from tests.helpers.pseudo_language import pseudo, untranslated
from views.map_assets import map_js
from views.told import tell
from views.words import LANGUAGE_VARIABLE, language, translated
from views.words.__main__ import main
from views.words.catalogue import WORDS, catalogue_text, read_catalogue
from views.words.gather import gather
from views.words.language import Language, faults

GERMAN = {
    "Block size": "Blockgröße",
    "{free:slot} of {all} are free.": "Von {all} sind {free:slot} frei.",
    "{free:slot} stand empty.": "{free:leerer Platz|leere Plätze}.",
    "slot|slots": "Platz|Plätze",
}


@pytest.fixture(autouse=True)
def english_again(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(logging.getLogger("views"), "propagate", True)
    yield
    language.cache_clear()


def speak(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv(LANGUAGE_VARIABLE, name)
    language.cache_clear()


@pytest.fixture
def german(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    file = tmp_path / "de.json"
    file.write_text(catalogue_text(GERMAN), "utf-8")
    speak(monkeypatch, str(file))


def test_the_committed_catalogue_is_what_the_source_says() -> None:
    committed = (WORDS / "en.json").read_text("utf-8")
    assert committed == catalogue_text(gather()), "gather it anew: python -m views.words --write"


def test_words_of_every_kind_are_gathered() -> None:
    words = gather()
    for text in (
        "Reserved space can go unused",  # a page's title
        "Every idea once, with a prediction before each.",  # a route
        "Slots reserved for each",  # a widget's label
        "11 tokens on pages of 4",  # an example's button
        "find by content (vLLM)",  # an option, by way of a dictionary's keys
        "Longest free run",  # a column, by way of another module's name
        "The other ending needs at least one word.",  # what a function of another module answers
        "A freed block keeps its content until it is taken for other tokens.",  # why an answer is wrong
        "{percent:.0f} % of nothing",
        "first fit",
        "Play (space)",  # the map's own
        "token|tokens",
    ):
        assert (text in words) is ("nothing" not in text), text
    assert [text for text in words if re.fullmatch(r"[\W\d_]*", re.sub(r"\{[^}]*\}", "", text))] == []


def test_no_text_of_a_question_is_missing() -> None:
    words = gather()
    texts = [text for lesson in LESSONS for seed in range(60) for text in texts_of(question(lesson, seed))]
    templates = {text.template if isinstance(text, Said) else str(text) for text in texts}
    no_words = {text for text in templates if not re.search("[a-z]{2}", re.sub(r"\{[^}]*\}", "", text))}
    sizes = {text for text in templates if re.fullmatch(r"[\d.]+ (bytes|KB|MB)", text)}
    assert templates - set(words) - no_words - sizes - scripted_words(templates) == set()
    assert len(templates & set(words)) > 100


def scripted_words(templates: set[str]) -> set[str]:
    """Choices that are the scene's words, in some order of its blocks."""
    return {text for text in templates if re.fullmatch(r"[A-Za-z]+( [A-Za-z]+){4,11}", text)}


def texts_of(asked: Question) -> list[str]:
    return [asked.prompt, *(text for choice in asked.choices for text in (choice.text, choice.why))]


def test_what_is_said_is_english_and_remembers_how() -> None:
    text = said("{free:slot} of {all} are free.", free=1, all=said("{n:block}", n=2))
    assert text == "1 slot of 2 blocks are free."
    assert (text.template, text.facts["free"]) == ("{free:slot} of {all} are free.", 1)


@pytest.mark.usefixtures("german")
def test_another_language_places_its_fields_and_counts_in_its_own_forms() -> None:
    assert translated("Block size") == "Blockgröße"
    assert translated(said("{free:slot} of {all} are free.", free=1, all=8)) == "Von 8 sind 1 Platz frei."
    assert tell("{free:slot} of {all} are free.", {"free": 3, "all": 8}) == "Von 8 sind 3 Plätze frei."
    assert tell("{free:slot} stand empty.", {"free": 1}) == "1 leerer Platz."
    assert tell("{n:block} of {inner}.", {"n": 2, "inner": said("{n:slot}", n=2)}) == "2 blocks of 2 Plätze."
    assert translated("A text that nobody translated.") == "A text that nobody translated."


def test_a_language_may_have_more_than_two_forms(tmp_path: Path) -> None:
    polish = "n==1 ? 0 : n%10>=2 && n%10<=4 && (n%100<10 || n%100>=20) ? 1 : 2"
    file = tmp_path / "pl.json"
    file.write_text(catalogue_text({"token|tokens": "token|tokeny|tokenów"}, polish), "utf-8")
    speaker = Language(read_catalogue(str(file)))
    told = [speaker.fill("{n:token}", {"n": n}) for n in (1, 3, 5, 12, 22)]
    assert told == ["1 token", "3 tokeny", "5 tokenów", "12 tokenów", "22 tokeny"]


@pytest.mark.parametrize(
    ("other", "fault"),
    [
        ("{gone} frei", "'{gone} frei' has a field that the English text has not: gone."),
        ("{free frei", "The braces of '{free frei' do not pair up."),
        ("{free:Platz} frei", "'{free:Platz} frei' counts in a word without its forms: Platz; write them as one|many."),
        ("{free:Platz|Plätze} frei", None),
    ],
)
def test_a_translation_that_cannot_be_filled_is_named_and_stays_english(
    other: str, fault: str | None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    words = {"{free:slot} are free": other}
    assert list(faults(words).values()) == ([fault] if fault else [])
    file = tmp_path / "xx.json"
    file.write_text(catalogue_text(words), "utf-8")
    speak(monkeypatch, str(file))
    with caplog.at_level(logging.WARNING):
        assert tell("{free:slot} are free", {"free": 2}) == ("2 slots are free" if fault else "2 Plätze frei")
    assert [record.message for record in caplog.records] == ([f"{fault} It stays English."] if fault else [])


@pytest.mark.parametrize("content", [None, "[]", "{", '{"words": {"a": 1}}', '{"words": {}, "plural": "os.exit()"}'])
def test_without_a_catalogue_the_lessons_are_in_english_and_the_log_says_so(
    content: str | None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "xx.json"
    if content is not None:
        file.write_text(content, "utf-8")
    speak(monkeypatch, str(file))
    with caplog.at_level(logging.WARNING):
        assert translated("Block size") == "Block size"
    [record] = caplog.records
    assert str(file) in record.message and record.message.endswith("The lessons are in English.")


def test_the_check_names_what_a_translation_lacks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = {english: pseudo(english) for english in gather()}
    file = tmp_path / "xx.json"
    file.write_text(catalogue_text(words), "utf-8")
    assert (main(["--check", str(file)]), capsys.readouterr().out) == (0, "Complete.\n")
    del words["Block size"]
    file.write_text(catalogue_text(words | {"Old text": "Alt"}), "utf-8")
    assert main(["--check", str(file)]) == 1
    assert capsys.readouterr().out == "Missing: 'Block size'\nNo longer used: 'Old text'\n"


def test_the_map_carries_its_words_and_only_its_own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert map_js().startswith("const WORDS = {};\n")
    file = tmp_path / "xx.json"
    file.write_text(catalogue_text({"Play": "</script>Los", "Block size": "Blockgröße"}), "utf-8")
    speak(monkeypatch, str(file))
    first = map_js().partition("\n")[0]
    assert first == r'const WORDS = {"Play": "\u003c/script>Los"};'
    assert json.loads(first.removeprefix("const WORDS = ").removesuffix(";")) == {"Play": "</script>Los"}


def test_the_map_says_literals_only_so_that_all_are_gathered() -> None:
    calls = re.findall(r"\bsaid\((.)", map_js())
    assert len(calls) > 90
    assert [first for first in calls if first != '"'] == ["e"], "the definition itself"


def test_what_is_left_untranslated_is_found() -> None:
    assert untranslated(pseudo("Blocks of {n:slot}") + " and more").split() == ["and", "more"]
    assert len(pseudo("Reserved")) >= 1.4 * len("Reserved")
