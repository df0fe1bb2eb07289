"""The fields of a request: each is read into a record, is known to change nothing here, or is refused by its name."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Annotated, Any, ClassVar, Literal, TypeVar, get_type_hints

import msgspec
from msgspec import Meta

from engine.serve.errors import ApiError

MAX_PROMPTS, MAX_SAMPLES, MAX_STOPS = 64, 128, 16
MAX_TOKENS_DECODED = 1 << 16
LONGEST_NAME = 100
"""Characters of a field's or a model's name that an error repeats."""

WITHOUT_EFFECT = frozenset((
    "metadata", "parallel_tool_calls", "prediction", "prompt_cache_key", "prompt_cache_options",
    "prompt_cache_retention", "safety_identifier", "service_tier", "store", "user",
))  # fmt: skip
"""Fields of OpenAI's API that never change an answer of this server, whatever their value."""
NEUTRAL: dict[str, tuple[Any, ...]] = {
    "bad_words": ([],), "best_of": (1,), "chat_template_kwargs": ({},), "documents": ([],), "echo": (False,),
    "frequency_penalty": (0,), "function_call": ("auto", "none"), "functions": ([],),
    "include_stop_str_in_output": (False,), "length_penalty": (1,), "logit_bias": ({},), "logits_processors": ([],),
    "logprobs": (False,), "min_p": (0,), "min_tokens": (0,), "modalities": (["text"],), "presence_penalty": (0,),
    "priority": (0,), "reasoning_effort": ("none",), "repetition_penalty": (1,), "response_format": ({"type": "text"},),
    "skip_special_tokens": (True,), "spaces_between_special_tokens": (True, False), "stop_token_ids": ([],),
    "suffix": ("",), "tool_choice": ("auto", "none"), "tools": ([],), "top_logprobs": (0,),
    "use_beam_search": (False,), "verbosity": ("medium",),
}  # fmt: skip
"""Fields this server does not have, with the values that ask for nothing. Other values, and fields that are neither
here nor in the records below, are refused."""

Flag = Annotated[bool, Meta(description="true or false")]
Name = Annotated[str, Meta(description="a text")]


class StreamOptions(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """`include_obfuscation` pads events against readers of the line; there is no padding here to leave out."""

    include_usage: bool | None = None
    include_obfuscation: bool | None = None


class RequestFields(msgspec.Struct, kw_only=True, frozen=True):
    """What every request has. The description of a field ends the sentence `NAME must be ...`."""

    required: ClassVar[str]
    model: Name | None = None


class Fields(RequestFields, kw_only=True, frozen=True):
    """What completions and chats have in common."""

    temperature: Annotated[float, Meta(ge=0, le=2, description="a number from 0 to 2")] = 1.0
    top_p: Annotated[float, Meta(gt=0, le=1, description="a number above 0 and at most 1")] = 1.0
    top_k: Annotated[int, Meta(ge=-1, le=1 << 31, description="a whole number from -1 to 2147483648")] = 0
    n: Annotated[int, Meta(ge=1, le=MAX_SAMPLES, description=f"a whole number from 1 to {MAX_SAMPLES}")] = 1
    max_tokens: Annotated[int, Meta(ge=0, le=1 << 31, description="a whole number from 0 to 2147483648")] | None = None
    seed: Annotated[int, Meta(ge=-(1 << 63), le=(1 << 63) - 1, description="a whole number of 64 bits")] | None = None
    stop: Annotated[
        str | Annotated[list[Annotated[str, Meta(min_length=1)]], Meta(max_length=MAX_STOPS)],
        Meta(description=f"a text or a list of at most {MAX_STOPS} texts, none of them empty"),
    ] = ""
    ignore_eos: Flag = False
    stream: Flag = False
    stream_options: Annotated[
        StreamOptions, Meta(description="an object; include_usage is the one of its fields that this server has")
    ] = StreamOptions()
    return_token_ids: Flag = False


class CompletionFields(Fields, kw_only=True, frozen=True):
    """POST /v1/completions. `add_special_tokens`: whether a text begins with the model's own mark for a beginning."""

    required = "prompt"
    prompt: Annotated[
        str | list[str | int | list[int]],
        Meta(description=f"text, token ids, or a list of 1 to {MAX_PROMPTS} of either"),
    ]
    add_special_tokens: Flag = True


class ChatFields(Fields, kw_only=True, frozen=True):
    """POST /v1/chat/completions. `max_completion_tokens` is the newer name of `max_tokens` and counts where both are.

    `add_generation_prompt`: end where the assistant's answer begins, which it does unless `continue_final_message`
    asks for an answer that goes on where the last message ends.
    """

    required = "messages"
    messages: Annotated[list[Any], Meta(min_length=1, description="a list of at least one message")]
    max_completion_tokens: (
        Annotated[int, Meta(ge=0, le=1 << 31, description="a whole number from 0 to 2147483648")] | None
    ) = None
    add_special_tokens: Flag = False
    add_generation_prompt: Flag | None = None
    continue_final_message: Flag = False


class TokenizeFields(RequestFields, kw_only=True, frozen=True):
    """POST /tokenize, for a text."""

    required = "prompt"
    prompt: Annotated[str, Meta(description="a text")]
    add_special_tokens: Flag = True


class DetokenizeFields(RequestFields, kw_only=True, frozen=True):
    """POST /detokenize. `skip_special_tokens` is SGLang's; vLLM writes them out, and so does this server by default."""

    required = "tokens"
    tokens: Annotated[
        list[Annotated[int, Meta(ge=0)]],
        Meta(max_length=MAX_TOKENS_DECODED, description=f"a list of at most {MAX_TOKENS_DECODED} token ids"),
    ]
    skip_special_tokens: Flag = False


class _TextPart(msgspec.Struct, forbid_unknown_fields=True):
    type: Literal["text"]
    text: str


class _Message(msgspec.Struct, forbid_unknown_fields=True):
    """The fields below `name` come back from clients that send an answer of ours again; only with nothing in them."""

    role: str
    content: str | list[_TextPart] | None = None
    name: str | None = None
    tool_calls: Annotated[list[Any], Meta(max_length=0)] | None = None
    annotations: Annotated[list[Any], Meta(max_length=0)] | None = None
    function_call: None = None
    refusal: None = None
    audio: None = None


F = TypeVar("F", bound=RequestFields)


def read_fields(body: Mapping[str, Any], kind: type[F]) -> F:
    """The record. A field that is null is one that is left out. Raises ApiError naming the field."""
    types = _types(kind)
    values: dict[str, Any] = {}
    for name, value in body.items():
        if value is None:
            continue
        if name not in types:
            if name in WITHOUT_EFFECT or _asks_for_nothing(name, value):
                continue
            shown = name[:LONGEST_NAME]
            shown = shown if shown.isidentifier() else repr(shown)
            raise ApiError(f"{shown} is not supported by this server; leave it out.", param=shown, code="unsupported")
        try:
            values[name] = msgspec.convert(value, types[name])
        except (msgspec.ValidationError, UnicodeEncodeError):  # the latter: a name within with half a surrogate pair
            raise wrong_value(kind, name) from None
    if kind.required not in values:
        raise wrong_value(kind, kind.required)
    return kind(**values)


def wrong_value(kind: type[RequestFields], name: str) -> ApiError:
    """The error for a field with a value that it cannot have."""
    return ApiError(f"{name} must be {_description(_types(kind)[name])}.", param=name)


def read_message(place: int, value: Any) -> dict[str, str]:
    """Role and content of `messages[place]`, for a chat template. An assistant's turn may be empty."""
    where = f"messages[{place}]"
    try:
        message = msgspec.convert(value, _Message)
    except (msgspec.ValidationError, UnicodeEncodeError) as error:
        reason, _, within = str(error).partition(" - at `$")
        raise ApiError(f"{where}{within.rstrip('`')} is not what a message has: {reason}.", param=where) from None
    content = message.content
    if content is None and message.role != "assistant":
        raise ApiError(f"{where} needs a content of text; only an assistant's turn may be without.", param=where)
    text = content if isinstance(content, str) else "".join(part.text for part in content or ())
    return {"role": message.role, "content": text} | ({"name": message.name} if message.name else {})


def _asks_for_nothing(name: str, value: Any) -> bool:
    """Whether it is one of the values that change nothing; `true` is not 1, and `false` is not 0."""
    neutral = NEUTRAL.get(name, ())
    return any(value == nothing and isinstance(value, bool) == isinstance(nothing, bool) for nothing in neutral)


@cache
def _types(kind: type[RequestFields]) -> dict[str, Any]:
    types = get_type_hints(kind, include_extras=True)
    return {name: types[name] for name in kind.__struct_fields__}


def _description(annotation: Any) -> str:
    """Of the annotation itself, or of the one part of a union that has one."""
    for part in (annotation, *getattr(annotation, "__args__", ())):
        for meta in getattr(part, "__metadata__", ()):
            if isinstance(meta, Meta) and meta.description:
                return meta.description
    raise AssertionError(f"{annotation} has no description")
