"""Controls that several experiments have: the model, prompts, choices and whole numbers, all in the address.

Each names the kept value as its default, too. A widget that the browser mounts anew, because an experiment starts its
page again as soon as it is done, would else show the default of its kind (nothing, or the lowest number) and send it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import streamlit as st

from views.kept import kept, kept_key
from views.live_settings import models
from views.url_values import ChoiceRule, NumberRule, TextRule

LONGEST_PROMPT = 300
"""Characters: an experiment answers in seconds, and its picture fits the page."""


def choose_model(page: str) -> str:
    """A model by name; the server's own first."""
    rule = ChoiceRule("model", "Model", models())
    name = kept(page, rule, rule.options[0])
    st.selectbox(rule.name, rule.options, rule.options.index(name), key=kept_key(page, rule.key))
    return name


def choose_model_and_block_size(page: str, rule: NumberRule) -> tuple[str, int]:
    """Both side by side; `rule` is the block size's."""
    model_side, size_side, _rest = st.columns([2, 1, 2], gap="medium")
    with model_side:
        model = choose_model(page)
    with size_side:
        block_size = type_number(page, rule)
    return model, block_size


def choose(page: str, rule: ChoiceRule, words: Mapping[str, str] | None = None) -> str:
    """One of a few, as pills; `words` says how each reads."""
    choice = kept(page, rule, rule.options[0])
    st.pills(
        rule.name, rule.options, default=choice, key=kept_key(page, rule.key), required=True,
        format_func=lambda option: words[option] if words else option,
    )  # fmt: skip
    return choice


def type_text(page: str, rule: TextRule, default: str, *, height: int = 68) -> str:
    """A box for text of the reader's own."""
    text = kept(page, rule, default)
    st.text_area(rule.name, text, max_chars=rule.longest, height=height, key=kept_key(page, rule.key))
    return text


def type_number(
    page: str, rule: NumberRule, explanation: str | None = None, on_change: Callable[[], None] | None = None
) -> int:
    """A whole number within the rule's range."""
    number = kept(page, rule, int(rule.default))
    st.number_input(
        rule.name, int(rule.low), int(rule.high), number,
        key=kept_key(page, rule.key), help=explanation, on_change=on_change,
    )  # fmt: skip
    return number


def slide_number(page: str, rule: NumberRule) -> int:
    """A whole number to drag."""
    number = kept(page, rule, int(rule.default))
    st.slider(rule.name, int(rule.low), int(rule.high), number, key=kept_key(page, rule.key))
    return number


def prompts_of(text: str, most: int) -> tuple[str, ...]:
    """Prompts typed one a line; empty lines are none. Raises ValueError when there are none, too many, or too long."""
    prompts = tuple(line for line in text.split("\n") if line.strip())
    if not 1 <= len(prompts) <= most:
        raise ValueError(f"Type 1 to {most} prompts, one a line; these are {len(prompts)}.")
    longest = max(map(len, prompts))
    if longest > LONGEST_PROMPT:
        raise ValueError(f"A prompt has at most {LONGEST_PROMPT} characters here; one of these has {longest}.")
    return prompts
