"""The catalogue: what the source says, complete, and every translation of it can be filled."""

from __future__ import annotations

import ast
import json
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from string import Formatter

import pytest
from babel.messages.catalog import Message
from babel.messages.pofile import read_po

from course.pages import EXPERIMENTS, LESSONS
from course.question import Question
from engine.i18n import install
from tests.helpers.pseudo_language import TEMPLATE, pseudo_catalogue, untranslated

ROOT = TEMPLATE.parents[1]
ROOMS = ("pages", "views", "course", "engine")
MARKS = {"_": (0, 1), "N_": (0, 1), "counted": (0, 2), "ngettext": (0, 2), "Plural": (1, 3)}
"""The functions that mark texts, and which of their arguments are texts."""
EXTRACT = re.compile(r"^    (pybabel extract .+)$", re.M)
TRANSLATIONS = sorted(ROOT.glob("locale/*/LC_MESSAGES/*.po"))


def messages(file: Path) -> list[Message]:
    with file.open("rb") as opened:
        return [message for message in read_po(opened) if message.id]


def forms(message: Message) -> list[str]:
    """The English texts of a message: one, or one and many."""
    return list(message.id) if message.pluralizable else [str(message.id)]


def test_the_template_equals_a_new_extraction(tmp_path: Path) -> None:
    [command] = EXTRACT.findall((ROOT / "docs" / "translating.md").read_text("utf-8"))
    made = tmp_path / "messages.pot"
    arguments = shlex.split(command.replace("locale/messages.pot", str(made)))
    subprocess.run([sys.executable, "-m", "babel.messages.frontend", "-q", *arguments[1:]], cwd=ROOT, check=True)
    assert made.read_text("utf-8") == TEMPLATE.read_text("utf-8"), f"extract it anew: {command}"


def test_texts_of_every_kind_are_extracted() -> None:
    words = {text for message in messages(TEMPLATE) for text in forms(message)}
    for text in (
        "Reserved space can go unused",  # a page's title
        "Each main idea once, with a prediction before it.",  # a route
        "Slots reserved for each",  # a widget's label
        "11 tokens in blocks of 4",  # an example's button
        "Prefix cache: three prompts",  # an option
        "Longest gap",  # a column
        "The other ending needs at least one word.",  # why a text cannot be used
        "A freed block keeps its content until it is allocated for other tokens.",  # why an answer is wrong
        "first fit",
        "Play (space)",  # the map's own script
        "{n} token",
        "{n} tokens",
        "one contiguous region of {n} slots",
    ):
        assert text in words, text


def test_every_marked_text_is_extracted() -> None:
    """None stands inside an f-string, where Babel does not look."""
    extracted = {text for message in messages(TEMPLATE) for text in forms(message)}
    marked = {text: file for room in ROOMS for file in (ROOT / room).rglob("*.py") for text in marked_in(file)}
    marked |= {text: file for file in (ROOT / "assets").rglob("*.js") for text in marked_in_script(file)}
    assert len(marked) > 1_000
    assert {text: str(file.relative_to(ROOT)) for text, file in marked.items() if text not in extracted} == {}


def marked_in(file: Path) -> Iterator[str]:
    for call in ast.walk(ast.parse(file.read_text("utf-8"))):
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id in MARKS:
            texts = call.args[slice(*MARKS[call.func.id])]
            yield from (text.value for text in texts if isinstance(text, ast.Constant))


def marked_in_script(file: Path) -> list[str]:
    return [json.loads(text) for text in re.findall(r'\b_\(("(?:[^"\\]|\\.)*")', file.read_text("utf-8"))]


def test_texts_hold_letters_and_named_fields() -> None:
    for message in messages(TEMPLATE):
        for text in forms(message):
            assert re.sub(r"\{[^}]*\}|[\W\d_]", "", text) or len(fields(text)) > 1, text
            assert all(re.match(r"[a-z]", field) for field in fields(text)), text


def test_a_plural_text_names_its_count_in_both_forms() -> None:
    counted = [message for message in messages(TEMPLATE) if message.pluralizable]
    assert len(counted) > 50
    for message in counted:
        one, many = forms(message)
        assert "n" in fields(one) and fields(one) == fields(many), message.id


@pytest.mark.parametrize("file", [TEMPLATE, *TRANSLATIONS], ids=lambda file: str(file.relative_to(ROOT)))
def test_every_translation_has_the_fields_of_its_text(file: Path) -> None:
    assert [fault for message in messages(file) for fault in faults_of(message)] == []


def test_a_translation_with_another_field_is_found() -> None:
    assert faults_of(Message("{free} are free", "{gone} frei")) == ["'{gone} frei' has not the fields of the English"]
    assert faults_of(Message(("{n} slot", "{n} slots"), ("{n} Platz", "Plätze"))) == [
        "'Plätze' has not the fields of the English"
    ]
    assert faults_of(Message("{free} are free", "frei: {free}")) == faults_of(Message("{free} are free", "")) == []


def faults_of(message: Message) -> list[str]:
    """What is wrong with a translation: a field more or less. An empty one stays English."""
    strings = [str(text) for text in message.string or ()] if message.pluralizable else [str(message.string or "")]
    expected = fields(forms(message)[-1])
    return [f"{text!r} has not the fields of the English" for text in strings if text and fields(text) != expected]


def fields(text: str) -> set[str]:
    return {name for _words, name, _spec, _conversion in Formatter().parse(text) if name is not None}


def test_no_text_of_a_question_is_missing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from course import lesson

    lesson._question.cache_clear()
    install(str(pseudo_catalogue(tmp_path)))
    try:
        texts = [
            text
            for lesson_ in (*LESSONS, *EXPERIMENTS)
            for seed in range(20)
            for text in texts_of(lesson_.question(seed))
        ]
    finally:
        install("")
        lesson._question.cache_clear()
    left = {text for text in texts if re.search("[a-z]{2}", untranslated(text))}
    assert {text for text in left if not is_of_the_scene(text)} == set()
    assert len(set(texts)) > 300


def texts_of(asked: Question) -> list[str]:
    return [asked.prompt, *(text for choice in asked.choices for text in (choice.text, choice.why))]


def is_of_the_scene(text: str) -> bool:
    """Choices that are the scene's words, in some order of its blocks, or sizes in bytes."""
    return bool(re.fullmatch(r"[A-Za-z]+( [A-Za-z]+){4,11}|[\d.]+ (bytes|KB|MB)", text))
