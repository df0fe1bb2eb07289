"""A request's JSON -> CompletionRequest. Errors are ApiError with the name of the field."""

from __future__ import annotations

import json
import secrets
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from engine.admission import max_blocks_needed
from engine.config import EngineConfig
from engine.model.tokenizer import Tokenizer
from engine.sampling_params import SamplingParams
from engine.serve.errors import ApiError
from engine.serve.fields import (
    MAX_PROMPTS,
    ChatFields,
    CompletionFields,
    Fields,
    read_fields,
    read_message,
    wrong_value,
)

MAX_BODY = 4 << 20
DEFAULT_COMPLETION_TOKENS = 16
LONGEST_NUMBER = 30
"""Digits of a whole number that is kept to the last one; no field takes a longer one."""


@dataclass(frozen=True, slots=True)
class CompletionRequest:
    """One HTTP request, of completions or chat: `prompts` as token ids, each sampled `params.n` times.

    prompt_field, limit_field: the names of the fields that gave the prompt and `max_tokens`, for errors.
    """

    prompts: tuple[list[int], ...]
    params: SamplingParams
    is_chat: bool
    stream: bool
    include_usage: bool
    return_token_ids: bool
    prompt_field: str
    limit_field: str


def read_json(body: bytes) -> Mapping[str, Any]:
    """The body as a JSON object. Raises ApiError when it is none."""
    try:
        value = json.loads(body, parse_int=_whole_number)
    except (ValueError, RecursionError):
        raise ApiError("The request is not JSON.") from None
    if not isinstance(value, dict):
        raise ApiError("The request must be a JSON object.")
    return value


def parse_completion_request(body: Mapping[str, Any], tokenizer: Tokenizer, config: EngineConfig) -> CompletionRequest:
    """Read a body of POST /v1/completions."""
    fields = read_fields(body, CompletionFields)
    prompts = _prompts(fields, tokenizer)
    return _completion_request(fields, prompts, config, fields.max_tokens, "max_tokens", DEFAULT_COMPLETION_TOKENS)


def parse_chat_request(body: Mapping[str, Any], tokenizer: Tokenizer, config: EngineConfig) -> CompletionRequest:
    """Read a body of POST /v1/chat/completions. Without a limit, max_tokens is what the length and the pool allow."""
    fields = read_fields(body, ChatFields)
    messages = [read_message(place, message) for place, message in enumerate(fields.messages)]
    prompt = _chat_prompt(fields, messages, tokenizer)
    limit, limit_field = fields.max_completion_tokens, "max_completion_tokens"
    if limit is None:
        limit, limit_field = fields.max_tokens, "max_tokens"
    return _completion_request(fields, (prompt,), config, limit, limit_field, config.max_model_len)


def _completion_request(
    fields: Fields,
    prompts: tuple[list[int], ...],
    config: EngineConfig,
    limit: int | None,
    limit_field: str,
    default_limit: int,
) -> CompletionRequest:
    try:
        params = SamplingParams(
            temperature=fields.temperature,
            top_p=fields.top_p,
            top_k=max(fields.top_k, 0),
            max_tokens=0 if limit is None else limit,
            n=fields.n,
            seed=secrets.randbits(63) if fields.seed is None else fields.seed,
            stop=tuple([fields.stop] if isinstance(fields.stop, str) and fields.stop else fields.stop),
            ignore_eos=fields.ignore_eos,
        )
    except ValueError as error:  # its sentences begin with the field's name
        raise ApiError(str(error), param=str(error).split()[0]) from None
    if limit is None:
        params = replace(params, max_tokens=min(default_limit, _most_tokens(prompts, params, config)))
    return CompletionRequest(
        prompts=prompts,
        params=params,
        is_chat=isinstance(fields, ChatFields),
        stream=fields.stream,
        include_usage=bool(fields.stream_options.include_usage),
        return_token_ids=fields.return_token_ids,
        prompt_field=fields.required,
        limit_field=limit_field,
    )


def _most_tokens(prompts: tuple[list[int], ...], params: SamplingParams, config: EngineConfig) -> int:
    """How many tokens the longest prompt can get here: to the end of its length or of the pool, and 1 at least."""
    length = max(map(len, prompts))

    def need(max_tokens: int) -> int:
        return max_blocks_needed(config, length, replace(params, max_tokens=max_tokens))

    return max(bisect_right(range(config.max_model_len - length + 1), config.num_blocks, key=need) - 1, 1)


def _chat_prompt(fields: ChatFields, messages: list[dict[str, str]], tokenizer: Tokenizer) -> list[int]:
    """Token ids of the chat as the model was trained to see it, up to where its answer begins."""
    goes_on = fields.continue_final_message
    if goes_on and fields.add_generation_prompt:
        raise ApiError(
            "continue_final_message cannot be true where add_generation_prompt is: the answer either goes on with the "
            "last message or begins a new one.",
            param="continue_final_message",
        )
    try:
        return tokenizer.encode_chat(
            messages,
            reply=fields.add_generation_prompt is not False,
            continue_final_message=goes_on,
            add_special_tokens=fields.add_special_tokens,
        )
    except ValueError as error:
        sentence = str(error)
        field = "continue_final_message" if sentence.startswith("continue_final_message") else "messages"
        raise ApiError(sentence, param=field) from None


def _prompts(fields: CompletionFields, tokenizer: Tokenizer) -> tuple[list[int], ...]:
    """Text, token ids, or a list of either."""
    given = fields.prompt
    whole = given if isinstance(given, list) and not all(isinstance(part, int) for part in given) else [given]
    texts = [part for part in whole if isinstance(part, str)]
    ids = [[token for token in part if isinstance(token, int)] for part in whole if isinstance(part, list)]
    if given == [] or len(whole) > MAX_PROMPTS or len(whole) not in (len(texts), len(ids)):
        raise wrong_value(CompletionFields, "prompt")
    return tuple(tokenizer.encode(text, add_special_tokens=fields.add_special_tokens) for text in texts) or tuple(ids)


def _whole_number(digits: str) -> int | float:
    return int(digits) if len(digits) <= LONGEST_NUMBER else float(digits)
