"""The official OpenAI client, everything it has for completions, chat completions and models, against our server."""

from __future__ import annotations

import inspect
import json
import urllib.request
from collections.abc import Iterator
from typing import Any, ClassVar

import openai
import pytest
from openai import AsyncOpenAI
from pydantic import BaseModel

from engine import EngineConfig
from engine.serve.__main__ import main
from tests.helpers.asynchronous import run_to_end
from tests.helpers.serve import CONFIG, ServedEngine, served_engine

MODEL = "somebody/tiny random"
SITE = "http://localhost:3000"
TEMPLATE = "{% for m in messages %}[{{ m.role }}]{{ m.content }}{% endfor %}[assistant]"
MESSAGES: Any = [{"role": "user", "content": "Hi"}]


@pytest.fixture(scope="module")
def served() -> Iterator[ServedEngine]:
    with served_engine(CONFIG, MODEL, [SITE]) as server:
        server.engine.tokenizer.chat_template = TEMPLATE
        yield server


@pytest.fixture(scope="module")
def client(served: ServedEngine) -> openai.OpenAI:
    return served.client


class TestEveryMethod:
    def test_every_route_is_covered(self, client):
        """A method that a newer client adds needs a test here."""
        methods = {
            name: [m for m in dir(part) if not m.startswith(("_", "with_"))]
            for name, part in (("completions", client.completions), ("chat", client.chat.completions),
                               ("models", client.models), ("messages", client.chat.completions.messages))
        }  # fmt: skip
        assert methods == {
            "completions": ["create"],
            "chat": ["create", "delete", "list", "messages", "parse", "retrieve", "stream", "update"],
            "models": ["delete", "list", "retrieve"],
            "messages": ["list"],
        }

    def test_models(self, client):
        [entry] = client.models.list()
        assert (entry.id, entry.object, client.models.retrieve(MODEL)) == (MODEL, "model", entry)

    @pytest.mark.parametrize("name", ["gpt-9", "somebody", "somebody/else", "\u2028", "a?b#c"])
    def test_a_model_that_is_not_served(self, client, name):
        with pytest.raises(openai.NotFoundError) as error:
            client.models.retrieve(name)
        assert (error.value.body["code"], error.value.body["param"]) == ("model_not_found", "model")

    def test_a_completion_through_every_client_method(self, client):
        asked: Any = {"model": MODEL, "prompt": "abc", "max_tokens": 6, "seed": 1, "extra_body": {"ignore_eos": True}}
        answer = client.completions.create(**asked)
        raw = client.completions.with_raw_response.create(**asked).parse()
        with client.completions.with_streaming_response.create(**asked) as response:
            streamed = response.parse()
        chunks = [piece.choices[0] for piece in client.completions.create(stream=True, **asked)]
        texts = [a.choices[0].text for a in (answer, raw, streamed)]
        assert [*texts, "".join(piece.text for piece in chunks)] == [texts[0]] * 4
        assert answer.usage.completion_tokens == 6

    def test_a_chat_through_every_client_method(self, client):
        asked: Any = {"model": MODEL, "messages": MESSAGES, "max_completion_tokens": 9, "seed": 1}
        asked["extra_body"] = {"ignore_eos": True}
        uncut = client.chat.completions.create(**asked).choices[0].message.content
        asked["stop"] = max(uncut, key=uncut.index)  # `parse` raises for an answer that was cut at its limit
        answer = client.chat.completions.create(**asked)
        parsed = client.chat.completions.parse(**asked)
        raw = client.chat.completions.with_raw_response.create(**asked).parse()
        stream = client.chat.completions.create(stream=True, **asked)
        chunks = [piece.choices[0].delta.content or "" for piece in stream]
        with client.chat.completions.stream(**asked, stream_options={"include_usage": True}) as stream:
            kinds = {event.type for event in stream}
            final = stream.get_final_completion()
        texts = [a.choices[0].message.content for a in (answer, parsed, raw, final)]
        assert [*texts, "".join(chunks)] == [texts[0]] * 5
        assert kinds == {"chunk", "content.delta", "content.done"}
        assert texts[0] == uncut[: uncut.index(asked["stop"])] != ""
        assert final.usage.completion_tokens == answer.usage.completion_tokens

    def test_a_reply_can_be_sent_back_as_a_message(self, client):
        turn = client.chat.completions.create(model=MODEL, messages=MESSAGES, max_tokens=2).choices[0].message
        for again in (turn, turn.model_dump()):
            answer = client.chat.completions.create(model=MODEL, messages=[*MESSAGES, again, *MESSAGES], max_tokens=1)
            assert answer.choices[0].finish_reason in ("length", "stop")

    def test_response_format_is_refused_by_its_field(self, client):
        class Shape(BaseModel):
            name: str

        with pytest.raises(openai.BadRequestError) as error:
            client.chat.completions.parse(model=MODEL, messages=MESSAGES, response_format=Shape)
        assert error.value.body["param"] == "response_format"

    def test_stored_completions_are_not_found(self, client):
        chat = client.chat.completions
        for ask in (
            lambda: chat.retrieve("chatcmpl-1"), lambda: chat.update("chatcmpl-1", metadata={}), lambda: chat.list(),
            lambda: chat.delete("chatcmpl-1"), lambda: chat.messages.list("chatcmpl-1"),
            lambda: client.models.delete(MODEL),
        ):  # fmt: skip
            with pytest.raises(openai.APIStatusError) as error:
                ask()
            assert error.value.status_code in (404, 405)
            assert error.value.body["type"] == "invalid_request_error"

    def test_the_async_client(self, served):
        async def ask() -> tuple[str, str, str]:
            async with AsyncOpenAI(base_url=f"{served.url}/v1", api_key="none", max_retries=0) as client:
                asked: Any = {"model": MODEL, "prompt": "abc", "max_tokens": 6, "seed": 1}
                whole = await client.completions.create(**asked)
                stream = await client.completions.create(stream=True, **asked)
                chunks = [piece.choices[0].text async for piece in stream]
                return whole.choices[0].text, "".join(chunks), (await client.models.retrieve(MODEL)).id

        text, streamed, model = run_to_end(ask())
        assert (streamed, model) == (text, MODEL)


class TestEveryParameter:
    """Each parameter of `create`, with a value that asks for something."""

    SERVED: ClassVar[dict[str, Any]] = {
        "max_tokens": 2, "n": 2, "seed": 3, "stop": ["q"], "stream": False, "stream_options": {"include_usage": True},
        "temperature": 0.5, "top_p": 0.5, "user": "me",
    }  # fmt: skip
    SERVED_IN_CHATS: ClassVar[dict[str, Any]] = {
        **SERVED, "max_completion_tokens": 2, "metadata": {"a": "b"}, "parallel_tool_calls": True,
        "prediction": {"type": "content", "content": "x"}, "prompt_cache_key": "k", "prompt_cache_options": {},
        "prompt_cache_retention": "24h", "safety_identifier": "s", "service_tier": "flex", "store": True,
    }  # fmt: skip
    REFUSED: ClassVar[dict[str, Any]] = {
        "best_of": 2, "echo": True, "frequency_penalty": 1, "logit_bias": {"5": 1}, "logprobs": 1,
        "presence_penalty": 1, "suffix": "x",
    }  # fmt: skip
    REFUSED_IN_CHATS: ClassVar[dict[str, Any]] = {
        "audio": {"voice": "x", "format": "wav"}, "frequency_penalty": 1, "function_call": {"name": "f"},
        "functions": [{"name": "f"}], "logit_bias": {"5": 1}, "logprobs": True, "modalities": ["text", "audio"],
        "moderation": {"model": "m"}, "presence_penalty": 1, "reasoning_effort": "high",
        "response_format": {"type": "json_object"}, "tool_choice": "required",
        "tools": [{"type": "function", "function": {"name": "f"}}], "top_logprobs": 1, "verbosity": "low",
        "web_search_options": {},
    }  # fmt: skip

    @staticmethod
    def parameters(create: Any) -> set[str]:
        names = set(inspect.signature(create).parameters)
        return names - {"model", "prompt", "messages", "extra_headers", "extra_query", "extra_body", "timeout"}

    def test_streamed_completions(self, client):
        create = client.completions.create
        assert self.parameters(create) == self.SERVED.keys() | self.REFUSED.keys()
        for name, value in self.SERVED.items():
            assert create(model=MODEL, prompt="a", **{"max_tokens": 1, name: value}).object == "text_completion"
        self.expect_refusals(create, {"prompt": "a"}, self.REFUSED)

    def test_streamed_chats(self, client):
        create = client.chat.completions.create
        assert self.parameters(create) == self.SERVED_IN_CHATS.keys() | self.REFUSED_IN_CHATS.keys()
        for name, value in self.SERVED_IN_CHATS.items():
            assert create(model=MODEL, messages=MESSAGES, **{"max_tokens": 1, name: value}).object == "chat.completion"
        self.expect_refusals(create, {"messages": MESSAGES}, self.REFUSED_IN_CHATS)

    @staticmethod
    def expect_refusals(create: Any, asked: dict[str, Any], refused: dict[str, Any]) -> None:
        for name, value in refused.items():
            with pytest.raises(openai.BadRequestError) as error:
                create(model=MODEL, **asked, **{name: value})
            assert error.value.body["param"] == name


class TestStreams:
    def test_every_event_is_one_line_under_any_line_splitting(self, served, monkeypatch):
        text = "a\u2028b\u2029c\x85d\x0b\x0c\x1ce"
        monkeypatch.setattr(served.engine.tokenizer, "piece", lambda _token: text.encode())
        asked = {"prompt": "abc", "max_tokens": 1, "stream": True, "seed": 1, "ignore_eos": True}
        request = urllib.request.Request(
            f"{served.url}/v1/completions", json.dumps(asked).encode(), {"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=60) as response:
            lines = response.read().decode().splitlines()
        [first, empty, *rest] = lines
        assert json.loads(first.removeprefix("data: "))["choices"][0]["text"] == text
        assert (empty, rest[-2:]) == ("", ["data: [DONE]", ""])

    @pytest.mark.parametrize("as_chat", [False, True])
    def test_token_ids_of_a_stream_equal_the_whole_response(self, client, as_chat):
        extra = {"ignore_eos": True, "return_token_ids": True}
        asked: Any = {"model": MODEL, "max_tokens": 9, "n": 2, "seed": 1, "extra_body": extra}
        asked |= {"messages": MESSAGES} if as_chat else {"prompt": "abc"}
        create = client.chat.completions.create if as_chat else client.completions.create
        whole, chunks = create(**asked), list(create(stream=True, **asked))
        for index in range(2):
            mine = [p.choices[0] for p in chunks if p.choices[0].index == index]
            ids = [token for choice in mine for token in getattr(choice, "token_ids", ())]
            assert ids == whole.choices[index].token_ids
        if as_chat:
            named = [p.prompt_token_ids for p in chunks if hasattr(p, "prompt_token_ids")]
            assert named == [whole.prompt_token_ids] * 2
        else:
            named = [p.choices[0].prompt_token_ids for p in chunks if hasattr(p.choices[0], "prompt_token_ids")]
            assert named == [choice.prompt_token_ids for choice in whole.choices]


@pytest.fixture(scope="module")
def small() -> Iterator[openai.OpenAI]:
    """A client of a server with a pool of 64 slots."""
    config = EngineConfig(
        model=CONFIG.model, block_size=4, num_blocks=16, max_model_len=1024, attention_backend="reference"
    )
    with served_engine(config, MODEL) as server:
        server.engine.tokenizer.chat_template = TEMPLATE
        yield server.client


class TestSmallPools:
    @pytest.mark.parametrize(("n", "num_tokens"), [(1, 46), (2, 22)])
    def test_a_chat_without_max_tokens_is_limited_by_the_pool(self, small, n, num_tokens):
        """19 prompt tokens; the last token is not stored. Two answers share four full blocks and have six more each."""
        extra = {"ignore_eos": True}
        answer = small.chat.completions.create(model=MODEL, messages=MESSAGES, n=n, extra_body=extra)
        assert answer.usage.prompt_tokens == 19
        assert [choice.finish_reason for choice in answer.choices] == ["length"] * n
        assert answer.usage.completion_tokens == n * num_tokens

    def test_a_completion_without_max_tokens_is_limited_by_the_pool(self, small):
        answer = small.completions.create(model=MODEL, prompt="x" * 60, extra_body={"ignore_eos": True})
        assert (answer.usage.completion_tokens, answer.choices[0].finish_reason) == (5, "length")

    def test_an_explicit_max_tokens_is_not_reduced(self, small):
        with pytest.raises(openai.BadRequestError) as error:
            small.chat.completions.create(model=MODEL, messages=MESSAGES, max_completion_tokens=100)
        assert error.value.body["param"] == "max_completion_tokens"

    def test_a_prompt_that_fills_the_pool_is_refused_by_its_field(self, small):
        with pytest.raises(openai.BadRequestError) as error:
            small.chat.completions.create(model=MODEL, messages=[{"role": "user", "content": "x" * 60}])
        assert error.value.body["param"] == "messages"


class TestOrigins:
    """Which sites' pages may use the server from a browser."""

    @staticmethod
    def preflight(url: str, origin: str) -> tuple[int, str | None]:
        headers = {
            "Origin": origin, "Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "content-type",
        }  # fmt: skip
        request = urllib.request.Request(f"{url}/v1/completions", headers=headers, method="OPTIONS")
        try:
            with urllib.request.urlopen(request, timeout=60) as response:
                return response.status, response.headers["Access-Control-Allow-Origin"]
        except urllib.error.HTTPError as error:
            return error.code, error.headers["Access-Control-Allow-Origin"]

    def test_an_allowed_origin_is_accepted(self, served):
        assert self.preflight(served.url, SITE) == (200, SITE)
        request = urllib.request.Request(f"{served.url}/v1/models", headers={"Origin": SITE})
        with urllib.request.urlopen(request, timeout=60) as response:
            assert response.headers["Access-Control-Allow-Origin"] == SITE

    def test_another_origin_is_refused(self, served):
        assert self.preflight(served.url, "http://evil.example") == (400, None)

    def test_no_origin_is_allowed_by_default(self):
        with served_engine() as closed:
            assert self.preflight(closed.url, SITE) == (405, None)

    @pytest.mark.parametrize("origin", ["localhost:3000", "http://localhost:3000/", "http://a b", "null", ""])
    def test_an_invalid_origin_is_refused(self, capsys, origin):
        with pytest.raises(SystemExit):
            main(["--model", CONFIG.model, "--no-events", "--allowed-origins", origin])
        assert f"{origin!r} is no origin: write it like http://localhost:3000" in capsys.readouterr().err
