"""Chat templates as Hugging Face models carry them: a small Jinja program from messages to one prompt."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, NoReturn

from jinja2 import TemplateError
from jinja2.ext import loopcontrols
from jinja2.sandbox import ImmutableSandboxedEnvironment

from engine.i18n import _

Message = Mapping[str, str]
"""`{"role": "system" | "user" | "assistant", "content": ...}`."""

_END_OF_CONTENT = "\ue000end of content\ue000 "
"""Where the last message's content ends in a rendered chat. The blank tells whether the template strips contents."""


def render_unfinished(template: str, messages: Sequence[Message], special_tokens: Mapping[str, str]) -> str:
    """The prompt that ends with the last message's content, for an answer that goes on with it.

    Raises ValueError as `render` does, and for a template that leaves the last message out.
    """
    marked = [*messages[:-1], {**messages[-1], "content": messages[-1]["content"] + _END_OF_CONTENT}]
    text = render(template, marked, special_tokens, reply=False)
    before, mark, after = text.rpartition(_END_OF_CONTENT.strip())
    if not mark:
        raise ValueError(
            _("continue_final_message is not possible: the model's chat template leaves out the last message.")
        )
    return before if after.startswith(" ") else before.rstrip()


def render(template: str, messages: Sequence[Message], special_tokens: Mapping[str, str], *, reply: bool) -> str:
    """The prompt for `messages`; with `reply` it ends where the assistant's answer begins.

    Templates come with the weights and are not trusted: they run in Jinja's sandbox.
    Raises ValueError with the template's own complaint, for instance about the order of roles.
    """
    try:
        return (
            _environment()
            .from_string(template)
            .render(messages=messages, add_generation_prompt=reply, **special_tokens)
        )
    except TemplateError as error:
        raise ValueError(_("The model's chat template refuses these messages: {error}").format(error=error)) from error


def _environment() -> ImmutableSandboxedEnvironment:
    """The settings, filter and functions that templates expect (those of transformers)."""
    environment = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=[loopcontrols])
    environment.filters["tojson"] = _to_json
    environment.globals["raise_exception"] = _raise
    environment.globals["strftime_now"] = lambda pattern: datetime.now().strftime(pattern)
    return environment


def _to_json(value: Any, indent: int | None = None) -> str:
    """Without Jinja's HTML escapes."""
    return json.dumps(value, ensure_ascii=False, indent=indent)


def _raise(message: str) -> NoReturn:
    raise TemplateError(message)
