"""A request's JSON, checked field by field: what is asked of the engine. Raises ApiError naming the field."""

from __future__ import annotations

import json
import math
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from engine.sampling_params import SamplingParams
from engine.serve.errors import ApiError
from engine.tokenizer import Tokenizer

MAX_BODY = 4 << 20
MAX_PROMPTS, MAX_SAMPLES, MAX_STOPS = 64, 128, 16
DEFAULT_COMPLETION_TOKENS = 16
_UNSUPPORTED = {
    "best_of": (None, 1), "echo": (None, False), "logprobs": (None, False), "top_logprobs": (None, 0),
    "suffix": (None, ""), "presence_penalty": (None, 0), "frequency_penalty": (None, 0), "logit_bias": (None, {}),
    "tools": (None, []), "functions": (None, []), "response_format": (None, {"type": "text"}),
}  # fmt: skip
"""Fields this server knows and does not have, with the values that ask for nothing."""


@dataclass(frozen=True, slots=True)
class Wish:
    """One HTTP request: `prompts` as token ids, each to be sampled `params.n` times."""

    prompts: tuple[list[int], ...]
    params: SamplingParams
    is_chat: bool
    stream: bool
    include_usage: bool
    return_token_ids: bool


def read_json(body: bytes) -> Mapping[str, Any]:
    """The request's object."""
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        raise ApiError("The request is not JSON.") from None
    if not isinstance(value, dict):
        raise ApiError("The request must be a JSON object.")
    return value


def completion_wish(body: Mapping[str, Any], tokenizer: Tokenizer) -> Wish:
    prompts = _prompts(body.get("prompt"), tokenizer)
    return _wish(body, prompts, DEFAULT_COMPLETION_TOKENS, is_chat=False)


def chat_wish(body: Mapping[str, Any], tokenizer: Tokenizer, max_model_len: int) -> Wish:
    try:
        text = tokenizer.render_chat(_messages(body.get("messages")))
    except ValueError as error:
        raise ApiError(str(error), param="messages") from None
    prompt = tokenizer.encode(text, add_special_tokens=False)
    return _wish(body, (prompt,), max(max_model_len - len(prompt), 1), is_chat=True)


def _wish(body: Mapping[str, Any], prompts: tuple[list[int], ...], default_tokens: int, *, is_chat: bool) -> Wish:
    _refuse_unsupported(body)
    options = body.get("stream_options") or {}
    if not isinstance(options, dict):
        raise ApiError("stream_options must be an object.", param="stream_options")
    return Wish(
        prompts=prompts,
        params=_params(body, default_tokens),
        is_chat=is_chat,
        stream=_truth(body, "stream"),
        include_usage=_truth(options, "include_usage"),
        return_token_ids=_truth(body, "return_token_ids"),
    )


def _params(body: Mapping[str, Any], default_tokens: int) -> SamplingParams:
    max_tokens_name = "max_completion_tokens" if body.get("max_completion_tokens") is not None else "max_tokens"
    try:
        return SamplingParams(
            temperature=_number(body, "temperature", 1.0, 0.0, 2.0),
            top_p=_number(body, "top_p", 1.0, 0.0, 1.0),
            top_k=max(_integer(body, "top_k", 0, -1, 1 << 31), 0),
            max_tokens=_integer(body, max_tokens_name, default_tokens, 0, 1 << 31),
            n=_integer(body, "n", 1, 1, MAX_SAMPLES),
            seed=_integer(body, "seed", secrets.randbits(63), -(1 << 63), 1 << 63),
            stop=_stop(body.get("stop")),
            ignore_eos=_truth(body, "ignore_eos"),
        )
    except ValueError as error:
        raise ApiError(str(error)) from None


def _prompts(value: Any, tokenizer: Tokenizer) -> tuple[list[int], ...]:
    """Text, token ids, or a list of either."""
    if isinstance(value, str):
        return (tokenizer.encode(value),)
    if _is_token_ids(value):
        return (value,)
    if isinstance(value, list) and 0 < len(value) <= MAX_PROMPTS:
        if all(isinstance(part, str) for part in value):
            return tuple(tokenizer.encode(part) for part in value)
        if all(_is_token_ids(part) for part in value):
            return tuple(value)
    raise ApiError(f"prompt must be text, token ids, or a list of 1 to {MAX_PROMPTS} of either.", param="prompt")


def _is_token_ids(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(type(token) is int for token in value)


def _messages(value: Any) -> list[dict[str, str]]:
    if not isinstance(value, list) or not value:
        raise ApiError("messages must be a list of at least one message.", param="messages")
    return [_message(message) for message in value]


def _message(value: Any) -> dict[str, str]:
    role = value.get("role") if isinstance(value, dict) else None
    content = value.get("content") if isinstance(value, dict) else None
    if isinstance(content, list) and all(_is_text_part(part) for part in content):
        content = "".join(part["text"] for part in content)
    if not isinstance(role, str) or not isinstance(content, str):
        raise ApiError("A message needs a role and a content of text.", param="messages")
    return {"role": role, "content": content}


def _is_text_part(part: Any) -> bool:
    return isinstance(part, dict) and part.get("type") == "text" and isinstance(part.get("text"), str)


def _stop(value: Any) -> tuple[str, ...]:
    stops = [value] if isinstance(value, str) else value or []
    if not isinstance(stops, list) or len(stops) > MAX_STOPS or not all(isinstance(s, str) and s for s in stops):
        raise ApiError(f"stop must be a text or a list of at most {MAX_STOPS} texts, none of them empty.", param="stop")
    return tuple(stops)


def _refuse_unsupported(body: Mapping[str, Any]) -> None:
    for name, harmless in _UNSUPPORTED.items():
        if body.get(name) not in harmless:
            raise ApiError(f"{name} is not supported by this server; leave it out.", param=name, code="unsupported")


def _number(body: Mapping[str, Any], name: str, default: float, low: float, high: float) -> float:
    value = default if body.get(name) is None else body[name]
    is_number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    if not is_number or not low <= value <= high:
        raise ApiError(f"{name} must be a number from {low:g} to {high:g}.", param=name)
    return float(value)


def _integer(body: Mapping[str, Any], name: str, default: int, low: int, high: int) -> int:
    value = default if body.get(name) is None else body[name]
    if type(value) is not int or not low <= value <= high:
        raise ApiError(f"{name} must be a whole number from {low} to {high}.", param=name)
    return value


def _truth(body: Mapping[str, Any], name: str) -> bool:
    value = body.get(name)
    if value is not None and not isinstance(value, bool):
        raise ApiError(f"{name} must be true or false.", param=name)
    return bool(value)
