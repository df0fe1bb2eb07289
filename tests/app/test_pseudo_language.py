"""Every lesson, the home page and the summary in a made-up language: no English prose is left on them.

What may stay English: what the engine says of its events, tokens and the reader's own words, names and numbers.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from engine.model_facts import WELL_KNOWN
from engine.scenes.words import passage
from tests.app.conftest import OpenPage
from tests.helpers.lessons import shown_maps
from tests.helpers.pseudo_language import pseudo, untranslated
from views.course import HOME, LESSONS, SUMMARY, CoursePage
from views.lessons import batch, block_table, growth, reserved_space, sharing, waste_between, what_is_cached
from views.words import LANGUAGE_VARIABLE, language
from views.words.catalogue import catalogue_text
from views.words.gather import gather

MODULES = (batch, block_table, growth, reserved_space, sharing, waste_between, what_is_cached)
FULL = " ".join(f"{name}1" for name in [chr(65 + i // 26) * (i > 25) + chr(65 + i % 26) for i in range(64)])
MOST_WORDS = 128
NAMES = {"KB", "MB", "GB", "bytes", "ref_cnt", "block_table", "block_size", "position", "slot", "tiny", "random"}
"""Units, the engine's names as code shows them, and what stands for itself."""
ENGINE_SAYS = r"(\w+: )?\d+ slots free, longest run \d+, need \d+"
WAYS = ("fork (the paper)", "find by content (vLLM)", "find by content, one prompt", "asked again later")
VISITS: dict[str, list[dict[str, str]]] = {
    "what_is_cached": [{}, {"card": "1", "model": "Llama 3.1 70B", "seed": "1"}, {"tokens": "900", "card": "x"}],
    "reserved_space": [{"seed": "1"}, {"words": "unknown"}],
    "waste_between": [{}, {"do": "A8 B4", "length": "x"}, {"do": FULL, "seed": "1"}, {"do": "A0", "seed": "2"}],
    "growth": [{"words": "my own", "text": "   "}, {"seed": "1"}, {"seed": "2", "words": "the guide's reply"}],
    "block_table": [{}, {"request": "C", "step": "0", "seed": "1"}],
    "sharing": [
        *({"way": way, "seed": str(seed)} for seed, way in enumerate(WAYS)),
        {"figure": "Fig. 9: beam search", "text": "one"},
        {"other": "-" * 300, "after": "4"},
    ],
    "batch": [{}, {"seed": "1", "requests": "10"}, {"seed": "2"}],
}


@pytest.fixture(autouse=True)
def made_up_language(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """Pictures are made once a process, so those of other tests are forgotten before and after."""
    file = tmp_path / "xx.json"
    file.write_text(catalogue_text({english: pseudo(english) for english in gather()}), "utf-8")
    monkeypatch.setenv(LANGUAGE_VARIABLE, str(file))
    forget()
    yield
    forget()


def forget() -> None:
    language.cache_clear()
    for module in MODULES:
        for made in vars(module).values():
            getattr(made, "cache_clear", bool)()


@pytest.mark.parametrize("page", (HOME, *LESSONS, SUMMARY), ids=lambda page: page.title)
def test_no_english_prose_is_left(open_page: OpenPage, page: CoursePage) -> None:
    for query in VISITS.get(str(page.url_path), [{}]):
        app = open_page(page.file, **query)
        assert not app.exception
        for radio in app.radio:
            radio.set_value(0).run()
        texts = texts_on(app.main)
        assert sum("⟦" in text for text in texts) >= 20
        allowed = NAMES | tokens_on(app) | names_of_models()
        assert {text: left for text in texts if (left := english_in(text) - allowed)} == {}, query


def test_a_lessons_own_sentences_are_translated_and_the_numbers_are_the_same(open_page: OpenPage) -> None:
    [first, *_others] = shown_maps(open_page("pages/batch.py", requests="5"))
    frame = first[0]["frames"][5]
    assert re.findall(r"\d+", " ".join(frame["say"])) == ["5", "53", "100", "47"]
    assert all(sentence.startswith("⟦") and sentence.endswith("⟧") for sentence in frame["say"])


def test_english_that_is_left_would_be_found() -> None:
    assert english_in("⟦Bloocks of ⟦4 sloots⟧⟧ and 3 **more**") == {"and", "more"}
    assert texts_in_html('<p aria-label="Read">a <b>b</b> <span class="pv-piece">fox</span></p>') == ["Read", "a b  "]


# ---- what a reader sees ----


def texts_on(element: Any) -> list[str]:
    """Every text of an element and those within it."""
    texts = texts_of(element)
    return texts + [text for child in getattr(element, "children", {}).values() for text in texts_on(child)]


def texts_of(element: Any) -> list[str]:
    match element.type:
        case "html":
            return texts_in_html(element.proto.body)
        case "bidi_component":
            return texts_in_map(json.loads(element.proto.json)["payload"])
        case "plotly_chart":
            drawn = json.loads(element.proto.spec)
            axes = [drawn["layout"][axis]["title"]["text"] for axis in ("xaxis", "yaxis")]
            return axes + [line["name"] for line in drawn["data"]]
        case "table" | "arrow_table":
            table = element.value.reset_index()
            return [*table.columns, *(cell for cell in table.to_numpy().flat if isinstance(cell, str))]
        case "code":
            return []
    proto = getattr(element, "proto", None)
    texts = [getattr(proto, field, "") for field in ("label", "body", "placeholder", "help")]
    options = [getattr(option, "content", option) for option in getattr(proto, "options", ())]
    return [text for text in (*texts, *options) if text]


def texts_in_html(body: str) -> list[str]:
    """Text between tags and names for screen readers; tokens, in `pv-piece`, are the reader's."""
    body = re.sub(r'<span class="pv-piece[^>]*>.*?</span>', " ", body)
    names = re.findall(r'(?:aria-label|title|alt)="([^"]*)"', body)
    inner = re.sub(r"</?(?:b|strong|small|span)\b[^>]*>", "", body)
    return [unescape(text) for text in (*names, *re.split(r"<[^>]*>", inner)) if text.strip()]


def texts_in_map(payload: dict[str, Any]) -> list[str]:
    """All but the sentences of events, which are the engine's."""
    frames = payload["frames"]
    figures = [text for frame in frames for _key, name, text in frame.get("figures", []) for text in (name, text)]
    beats = [beat for frame in frames for beat in frame.get("beats", [])]
    return [payload["title"], *(frame["label"] for frame in frames), *figures, *beats]


def english_in(text: str) -> set[str]:
    """Words outside of the brackets; addresses and what the engine says are none."""
    text = re.sub(r"https?://[^\s)]+", " ", re.sub(ENGINE_SAYS, " ", text.replace("**", "")))
    return set(re.findall(r"[A-Za-z][A-Za-z_']+", untranslated(text)))


def tokens_on(app: AppTest) -> set[str]:
    """Words that the pictures store, or a question's scene."""
    frames = [frame for payload, _position in shown_maps(app) for frame in payload["frames"]]
    tokens = " ".join(text for frame in frames for _id, text in frame.get("new_tokens", []))
    return set(re.findall(r"[A-Za-z][A-Za-z_']+", " ".join((tokens, *passage(MOST_WORDS)))))


def names_of_models() -> set[str]:
    return {word for model in WELL_KNOWN for word in re.findall(r"[A-Za-z][A-Za-z_']+", model.name)}
