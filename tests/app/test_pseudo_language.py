"""Every page in a made-up language: no English prose is left on it, the engine's own sentences included.

What may stay English: tokens and the reader's own words, names and numbers.
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

from course import lesson
from course.lesson import CoursePage
from course.pages import COURSE, LIVE_ENGINE
from course.words import passage
from engine.i18n import install
from engine.model.kv_cache_size import WELL_KNOWN
from tests.app.conftest import OpenPage, until_loaded
from tests.helpers.lessons import shown_maps
from tests.helpers.pseudo_language import pseudo_catalogue, untranslated
from views.lab import equation, preemption, race, race_animation, sabotage, shuffle, why_not_shared
from views.lessons import batch, block_table, growth, reserved_space, sharing, waste_between, what_is_cached
from views.live.tools import TABLES, TOOLS
from views.server.model_registry import EMBEDDED

MODULES = (
    batch, block_table, growth, reserved_space, sharing, waste_between, what_is_cached,
    equation, preemption, race, race_animation, sabotage, shuffle, why_not_shared,
)  # fmt: skip
PRESSED = {"remote_server": ("open_recorded",), "live_engine": ("add", "step", "step")}
"""Buttons to press first, by page: what they show is read, too."""
FULL = " ".join(f"{name}1" for name in [chr(65 + i // 26) * (i > 25) + chr(65 + i % 26) for i in range(64)])
MOST_WORDS = 128
NAMES = (
    {
        "KB",
        "MB",
        "GB",
        "KiB",
        "GiB",
        "bytes",
        "ref_cnt",
        "block_table",
        "block_size",
        "position",
        "slot",
        "tiny",
        "random",
    }
    | set(re.findall("[A-Za-z]+", EMBEDDED))
    | {"read_own_tokens", "Max", "Pow", "Oracle", "Paged", "Alpaca", "ShareGPT", "NaN"}
    | {"Orca", "vLLM", "OPT", "LLaMA", "WMT"}
)
"""Units, the engine's names as code shows them, and what stands for itself."""
WAYS = ("Fork: two samples", "Prefix cache: three prompts", "Prefix cache: two samples", "Prefix cache: repeat later")
VISITS: dict[str, list[dict[str, str]]] = {
    "what_is_cached": [{}, {"card": "1", "model": "Llama 3.1 70B", "seed": "1"}, {"tokens": "900", "card": "x"}],
    "reserved_space": [{"seed": "1"}, {"words": "unknown"}],
    "waste_between": [{}, {"do": "A8 B4", "length": "x"}, {"do": FULL, "seed": "1"}, {"do": "A0", "seed": "2"}],
    "growth": [{"words": "my own", "text": "   "}, {"seed": "1"}, {"seed": "2", "words": "a 14-word reply"}],
    "block_table": [{}, {"request": "C", "step": "0", "seed": "1"}],
    "sharing": [
        *({"way": way, "seed": str(seed)} for seed, way in enumerate(WAYS)),
        {"figure": "Fig. 9: beam search", "text": "one"},
        {"other": "-" * 300, "after": "4"},
    ],
    "batch": [{}, {"seed": "1", "requests": "10"}, {"seed": "2"}],
}


@pytest.fixture(autouse=True)
def made_up_language(tmp_path: Path) -> Iterator[None]:
    """Pictures are made once a process, so those of other tests are forgotten before and after."""
    install(str(pseudo_catalogue(tmp_path)))
    forget()
    yield
    install("")
    forget()


def forget() -> None:
    lesson._question.cache_clear()
    for module in MODULES:
        for made in vars(module).values():
            getattr(made, "cache_clear", bool)()


@pytest.mark.parametrize("page", COURSE, ids=lambda page: page.title)
@pytest.mark.slow
def test_no_untranslated_text_on_a_page(open_page: OpenPage, page: CoursePage) -> None:
    for query in VISITS.get(str(page.url_path), [{}]):
        app = open_page(page.file, **query)
        assert not app.exception
        for radio in app.radio:
            radio.set_value(0).run()
        for key in PRESSED.get(str(page.url_path), ()):
            until_loaded(app.button(key=key).click().run())
        assert english_on(app) == {}, query


@pytest.mark.parametrize("tool", (TABLES, *TOOLS))
@pytest.mark.slow
def test_no_untranslated_text_in_a_tool_of_the_live_page(open_page: OpenPage, tool: str) -> None:
    app = open_page(LIVE_ENGINE.file, tool=tool, samples="2")
    for key in ("add", *["step"] * 3):
        app.button(key=key).click().run()
    assert english_on(app) == {}


def english_on(app: AppTest) -> dict[str, set[str]]:
    """The English that is left, by the text that has it."""
    texts = texts_on(app.main)
    assert sum("⟦" in text for text in texts) >= 4
    allowed = NAMES | tokens_on(app) | names_of_models()
    return {text: left for text in texts if (left := english_in(text) - allowed)}


def test_a_lessons_own_sentences_are_translated_and_the_numbers_are_the_same(open_page: OpenPage) -> None:
    [first, *_others] = shown_maps(open_page("pages/batch.py", requests="5"))
    frame = first[0]["frames"][5]
    assert re.findall(r"\d+", " ".join(frame["say"])) == ["5", "53", "100", "47"]
    assert all(sentence.startswith("⟦") and sentence.endswith("⟧") for sentence in frame["say"])


def test_untranslated_text_is_detected() -> None:
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
            data = json.loads(element.proto.json)
            return texts_in_map(data["payload"]) if "payload" in data else [data["label"]] if "label" in data else []
        case "plotly_chart":
            drawn = json.loads(element.proto.spec)
            titles = [drawn["layout"].get(axis, {}).get("title", {}).get("text") for axis in ("xaxis", "yaxis")]
            return [text for text in (*titles, *(line.get("name") for line in drawn["data"])) if text]
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
    """Text between tags and names for screen readers, without tokens, prompts and replies."""
    body = re.sub(
        r'<span class="(?:pv-piece|prompt|reply)[^>]*>.*?</span>|<div class="pv-text (?:reply|pv-edit).*?</div>'
        r"|<code>.*?</code>",
        " ",
        body,
    )
    names = re.findall(r'(?:aria-label|title|alt)="([^"]*)"', body)
    inner = re.sub(r"</?(?:b|strong|small|span)\b[^>]*>", "", body)
    return [unescape(text) for text in (*names, *re.split(r"<[^>]*>", inner)) if text.strip()]


def texts_in_map(payload: dict[str, Any]) -> list[str]:
    """Title, labels, sentences, figures and captions."""
    frames = payload["frames"]
    figures = [text for frame in frames for _key, name, text in frame.get("figures", []) for text in (name, text)]
    captions = [caption for frame in frames for caption in frame.get("captions", [])]
    said = [text for frame in frames for text in (*frame["say"], frame.get("headline", ""))]
    return [payload["title"], *(frame["label"] for frame in frames), *said, *figures, *captions]


def english_in(text: str) -> set[str]:
    """Words outside of the brackets; addresses and what the engine says are none."""
    text = re.sub(r"https?://[^\s)]+", " ", text.replace("**", ""))
    return {word for word in re.findall(r"[A-Za-z][A-Za-z_']+", untranslated(text)) if not word.isupper()}


def tokens_on(app: AppTest) -> set[str]:
    """Words that the pictures store, or a question's scene."""
    frames = [frame for payload, _position in shown_maps(app) for frame in payload["frames"]]
    tokens = " ".join(text for frame in frames for _id, text in frame.get("new_tokens", []))
    return set(re.findall(r"[A-Za-z][A-Za-z_']+", " ".join((tokens, *passage(MOST_WORDS)))))


def names_of_models() -> set[str]:
    return {word for model in WELL_KNOWN for word in re.findall(r"[A-Za-z][A-Za-z_']+", model.name)}
