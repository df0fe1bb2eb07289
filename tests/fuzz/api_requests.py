"""Requests to the API server, all fields with values of all types, and what must hold of every answer."""

from __future__ import annotations

import ast
import atexit
import json
import logging
from collections.abc import Mapping
from functools import cache
from typing import Any

import msgspec
from hypothesis import strategies as st
from starlette.testclient import TestClient

from engine import EngineConfig
from engine.admission import RequestRefusedError
from engine.serve.errors import ApiError
from engine.serve.fields import (
    NEUTRAL,
    WITHOUT_EFFECT,
    ChatFields,
    CompletionFields,
    DetokenizeFields,
    TokenizeFields,
)
from engine.serve.server import make_app
from tests.fuzz.nonsense import HOSTILE, json_values
from tests.helpers.hash_model import hash_engine

COMPLETIONS, CHAT, MODELS = "/v1/completions", "/v1/chat/completions", "/v1/models/"
TOKENIZE, DETOKENIZE = "/tokenize", "/detokenize"
REQUIRED = {COMPLETIONS: "prompt", CHAT: "messages", MODELS: "model", TOKENIZE: "prompt", DETOKENIZE: "tokens"}
CONFIG = EngineConfig(block_size=2, num_blocks=24, max_model_len=40, max_num_seqs=6)
TEMPLATE = (
    "{% for m in messages %}{% if m.role == 'tool' %}{{ raise_exception('No ' + m.content) }}{% endif %}"
    "<{{ m.content }}>{% endfor %}{% if add_generation_prompt %}={% endif %}"
)
"""Of letters that the model has: it reads the first 64 bytes only, so that many prompts are refused."""
REFUSALS = (msgspec.ValidationError, UnicodeError, json.JSONDecodeError, RecursionError, RequestRefusedError)
"""What the server may turn into an answer, beside what the chat template says (a ValueError and nothing below it)."""

# ---- requests ----

numbers = st.one_of(
    st.integers(-3, 40),
    st.floats(0, 2),
    st.sampled_from([10**400, -(10**400), 2**63, -(2**63), 2**64, 1 << 31, 1e308, -0.0, 0, 1, True, False]),
)
prompt_texts = st.text("0123456789 +-", max_size=30)
token_ids = st.lists(st.integers(-1, 64), max_size=12)
values = st.one_of(
    json_values, numbers, prompt_texts, token_ids, st.lists(prompt_texts, max_size=3), st.lists(token_ids, max_size=3)
)
roles = st.sampled_from(["system", "user", "assistant", "tool"])
parts = st.lists(st.fixed_dictionaries({"type": st.just("text"), "text": prompt_texts}), max_size=2)
contents = st.one_of(prompt_texts, parts, st.none(), json_values)
turns = st.fixed_dictionaries(
    {"role": roles, "content": contents},
    optional=dict.fromkeys(("name", "tool_calls", "refusal", "audio", "no_such_field", "\ud800"), json_values),
)
messages = st.lists(st.one_of(turns, json_values), min_size=1, max_size=4)
stream_options = st.dictionaries(
    st.sampled_from(["include_usage", "include_obfuscation", "x", "\ud800"]), st.one_of(st.booleans(), json_values)
)
FIELDS = sorted(
    {name for kind in (CompletionFields, ChatFields, TokenizeFields, DetokenizeFields)
     for name in kind.__struct_fields__} | {*NEUTRAL, *WITHOUT_EFFECT, "no_such_field"}
)  # fmt: skip
plausible = {
    "model": st.sampled_from(["m/1", "m/1", "m/2"]), "prompt": st.one_of(prompt_texts, token_ids), "messages": messages,
    "stream_options": stream_options, "stop": st.one_of(prompt_texts, st.lists(prompt_texts, max_size=20)),
    "max_tokens": numbers, "max_completion_tokens": numbers, "temperature": numbers, "top_p": numbers, "n": numbers,
    "seed": numbers, "top_k": numbers,
    **{name: st.booleans() for name in ("stream", "ignore_eos", "return_token_ids", "continue_final_message",
                                        "add_generation_prompt", "add_special_tokens")},
    **{name: st.sampled_from(neutral) for name, neutral in NEUTRAL.items()},
}  # fmt: skip


paths = st.sampled_from([COMPLETIONS, CHAT, COMPLETIONS, CHAT, TOKENIZE, DETOKENIZE])


@st.composite
def bodies(draw: st.DrawFn, path: str) -> dict[str, Any]:
    """A request that can be served, with a few fields that are plausible and a few that are anything."""
    asked = {"prompt": prompt_texts, "messages": st.lists(turns, min_size=1, max_size=2), "tokens": token_ids}
    body: dict[str, Any] = {REQUIRED[path]: draw(asked[REQUIRED[path]])}
    if draw(st.booleans()):
        body["stream"] = True
    for name in draw(st.lists(st.sampled_from(sorted(plausible)), max_size=3)):
        body[name] = draw(plausible[name])
    if draw(st.booleans()):
        body[draw(st.one_of(st.sampled_from(FIELDS), st.sampled_from(HOSTILE), st.text(max_size=8)))] = draw(values)
    return body


@st.composite
def damaged(draw: st.DrawFn) -> tuple[str, bytes]:
    """A body that was cut, or in which some bytes are others."""
    path = draw(paths)
    body = bytearray(json.dumps(draw(bodies(path))).encode())
    at = draw(st.integers(0, len(body)))
    return path, bytes(body[:at] + draw(st.binary(max_size=4)) + body[at + draw(st.integers(0, 99)) :])


def written(path: str, body: Mapping[str, Any]) -> tuple[str, bytes]:
    return path, json.dumps(body).encode()


def model_address(name: str) -> tuple[str, bytes]:
    """No route takes a name with a line end in it: it is answered as a page that is not there."""
    return MODELS + "".join(f"%{byte:02X}" for byte in name.replace("\n", "").encode("utf-8", "replace")), b""


requests = st.one_of(
    paths.flatmap(lambda path: bodies(path).map(lambda body: written(path, body))),
    paths.flatmap(lambda path: bodies(path).map(lambda body: written(path, body))),
    damaged(),
    st.one_of(st.sampled_from(HOSTILE), st.text(max_size=20)).map(model_address),
)
"""Path and body; a model is asked for with a GET."""

# ---- answers ----


class Watch(logging.Handler):
    """What the server logged as an error, and errors that it answered without having to expect them."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.seen: list[str] = []
        logging.getLogger().addHandler(self)

    def emit(self, record: logging.LogRecord) -> None:
        self.seen.append(record.getMessage())

    def look_at(self, error: ApiError) -> None:
        below = error.__context__
        is_templates = type(below) is ValueError and str(below) == error.message
        if below is not None and not is_templates and not isinstance(below, REFUSALS):
            self.seen.append(f"{error.message} came from {below!r}")


@cache
def server() -> tuple[TestClient, Watch]:
    engine = hash_engine(CONFIG)
    engine.tokenizer.chat_template = TEMPLATE
    watch = Watch()
    client = TestClient(make_app(engine, "m/1"))
    client.__enter__()
    atexit.register(client.__exit__, None, None, None)
    made_by_the_server = ApiError.response

    def response(error: ApiError) -> Any:
        watch.look_at(error)
        return made_by_the_server(error)

    ApiError.response = response  # type: ignore[method-assign, assignment]
    return client, watch


def try_a_request(asked: tuple[str, bytes]) -> None:
    """It is answered, or refused with the name of a field that the request has or lacks; nothing fails unseen."""
    path, body = asked
    client, watch = server()
    watch.seen.clear()
    if path.startswith(MODELS):
        sent = client.get(path)
    else:
        sent = client.post(path, content=body, headers={"Content-Type": "application/json"})
    assert not watch.seen, watch.seen
    if sent.status_code == 200:
        expect_a_whole_answer(path, body, sent.text)
    else:
        expect_a_refusal(path, body, sent.status_code, sent.json()["error"])


def expect_a_whole_answer(path: str, body: bytes, text: str) -> None:
    if path.startswith(MODELS):
        assert json.loads(text)["id"] == "m/1"
        return
    if path in (TOKENIZE, DETOKENIZE):
        assert isinstance(json.loads(text)["tokens" if path == TOKENIZE else "prompt"], list | str)
        return
    if not json.loads(body).get("stream"):
        assert all(choice["finish_reason"] for choice in json.loads(text)["choices"])
        return
    *events, done, end = text.split("\n\n")
    assert (done, end) == ("data: [DONE]", "")
    assert all("\n" not in event and len(event.splitlines()) == 1 for event in events)
    choices = [c for event in events for c in json.loads(event.removeprefix("data: "))["choices"]]
    ends = [choice["index"] for choice in choices if choice["finish_reason"]]
    assert sorted(ends) == sorted({choice["index"] for choice in choices})


def expect_a_refusal(path: str, body: bytes, status: int, error: Mapping[str, Any]) -> None:
    assert status in (400, 404) and error["type"] == "invalid_request_error" and error["message"], error
    try:
        fields = json.loads(body)
    except (ValueError, RecursionError):
        fields = None
    if path.startswith(MODELS):
        assert (error["param"], error["code"]) == ("model", "model_not_found")
    elif isinstance(fields, dict):
        name = error["param"].partition("[")[0]
        shown = [field[:100] for field in fields]
        assert name == REQUIRED[path] or name in shown or ast.literal_eval(error["param"]) in shown, error
    else:
        assert error["message"] in ("The request is not JSON.", "The request must be a JSON object.")
