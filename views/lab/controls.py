"""Controls that several experiments have: the model, prompts, choices and whole numbers, all in the address.

Each names the kept value as its default, too. A widget that the browser mounts anew, because an experiment starts its
page again as soon as it is done, would else show the default of its kind (nothing, or the lowest number) and send it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import streamlit as st

from engine.i18n import N_, _
from views.elements.text_box import draw_length
from views.server.model_registry import model_names
from views.url_state import draw_correction, get_url_value, url_value_key
from views.url_values import ChoiceRule, NumberRule, TextRule

LONGEST_PROMPT = 300
"""Characters: an experiment answers in seconds, and its picture fits the page."""


def choose_model(page: str) -> str:
    """A model by name; the server's own first."""
    rule = ChoiceRule("model", N_("Model"), model_names())
    name = get_url_value(page, rule, rule.options[0])
    st.selectbox(_(rule.name), rule.options, rule.options.index(name), format_func=_, key=url_value_key(page, rule.key))
    return name


def choose(page: str, rule: ChoiceRule, words: Mapping[str, str] | None = None) -> str:
    """One of a few, as pills; `words` says how each reads."""
    choice = get_url_value(page, rule, rule.options[0])
    st.pills(
        _(rule.name), rule.options, default=choice, key=url_value_key(page, rule.key), required=True,
        format_func=lambda option: _(words[option] if words else option),
    )  # fmt: skip
    return choice


def type_text(page: str, rule: TextRule, default: str, *, height: int = 68) -> str:
    """A box for text of the reader's own; one that is too long is cut, and said so below."""
    text = get_url_value(page, rule, default)
    st.text_area(_(rule.name), text, height=height, key=url_value_key(page, rule.key))
    draw_length(text, rule.longest)
    draw_correction(page, rule.key)
    return text


def type_number(
    page: str, rule: NumberRule, explanation: str | None = None, on_change: Callable[[], None] | None = None
) -> int:
    """A whole number within the rule's range."""
    number = get_url_value(page, rule, int(rule.default))
    st.number_input(
        _(rule.name), int(rule.low), int(rule.high), number,
        key=url_value_key(page, rule.key), help=explanation, on_change=on_change,
    )  # fmt: skip
    return number


def slide_number(page: str, rule: NumberRule) -> int:
    """A whole number to drag."""
    number = get_url_value(page, rule, int(rule.default))
    st.slider(_(rule.name), int(rule.low), int(rule.high), number, key=url_value_key(page, rule.key))
    return number


def prompts_of(text: str, most: int) -> tuple[str, ...]:
    """Prompts typed one a line; empty lines are none. Raises ValueError when there are none, too many, or too long."""
    prompts = tuple(line for line in text.split("\n") if line.strip())
    if not 1 <= len(prompts) <= most:
        raise ValueError(
            _("Type 1 to {most} prompts, one a line; these are {num_prompts}.").format(
                most=most, num_prompts=len(prompts)
            )
        )
    longest = max(map(len, prompts))
    if longest > LONGEST_PROMPT:
        raise ValueError(
            _("A prompt has at most {most} characters here; one of these has {longest}. Shorten it.").format(
                most=LONGEST_PROMPT, longest=longest
            )
        )
    return prompts
