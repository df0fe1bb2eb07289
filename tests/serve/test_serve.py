"""Our server as its clients see it: the official OpenAI client, KV-event readers, metrics."""

from __future__ import annotations

import json
import secrets
import socket
import threading
import time
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from urllib.parse import urlsplit

import openai
import pytest

from engine import Engine, SamplingParams
from engine.remote.addresses import events_address, http_address
from engine.remote.http import HttpError, get, post_json
from engine.remote.metrics import OURS, MetricsSample, read_metrics
from engine.remote.prompt import PromptRequest, send_prompt
from engine.remote.server import RemoteServer, ServerAddresses
from engine.serve.__main__ import main
from engine.serve.metrics import StatLogger
from tests.helpers.kv_stream import wait_until
from tests.helpers.serve import CONFIG, TINY, ServedEngine, served_engine
from tests.helpers.waiting import until_equal

PROMPT = "abcdefghij klmnop"


@pytest.fixture(scope="module")
def served() -> Iterator[ServedEngine]:
    with served_engine() as server:
        yield server


@pytest.fixture(scope="module")
def alone() -> Engine:
    """An engine like the one that is served, to compare with."""
    return Engine(CONFIG)


def metrics(served: ServedEngine) -> MetricsSample:
    return read_metrics(get(http_address(served.url), "/metrics", seconds=30), 0.0)


def all_blocks_are_back(served: ServedEngine) -> bool:
    sample = metrics(served)
    return (sample.kv_usage, sample.num_running, sample.num_waiting) == (0, 0, 0)


def send(served: ServedEngine, body: bytes, path: str = "/v1/completions") -> None:
    """A body that no JSON writer makes. Raises HttpError with the server's status and sentence."""
    request = urllib.request.Request(f"{served.url}{path}", body, {"Content-Type": "application/json"})
    try:
        urllib.request.urlopen(request, timeout=60).close()
    except urllib.error.HTTPError as error:
        raise HttpError(f"status {error.code}: {json.loads(error.read())['error']['message']}") from None


def complete(served: ServedEngine, prompt=PROMPT, **fields):
    """Greedy and to its full length, unless asked otherwise."""
    more = {"ignore_eos": True} | fields.pop("extra_body", {})
    fields = {"temperature": 0, "max_tokens": 8} | fields
    return served.client.completions.create(model=TINY, prompt=prompt, extra_body=more, **fields)


def empty_the_cache(served: ServedEngine) -> None:
    urllib.request.urlopen(urllib.request.Request(f"{served.url}/reset_prefix_cache", b""), timeout=60).close()


def says_something_that_is_heard(served: ServedEngine, watcher: RemoteServer) -> bool:
    """What a publisher says before a subscription has reached it is said to nobody."""
    complete(served, secrets.token_hex(8), max_tokens=1)
    return watcher.last_step > 0


def expected(alone: Engine, prompt) -> str:
    [output] = alone.generate([prompt], SamplingParams(max_tokens=8, ignore_eos=True))
    return output.outputs[0].text


class TestCompletions:
    def test_the_text_is_the_engines(self, served, alone):
        answer = complete(served)
        assert answer.choices[0].text == expected(alone, PROMPT)
        assert (answer.object, answer.model, answer.choices[0].finish_reason) == ("text_completion", TINY, "length")

    def test_usage_counts_prompt_completion_and_cached_tokens(self, served):
        prompt = "usage " * 3
        usages = [complete(served, prompt, n=2).usage for _ in range(2)]
        assert [(u.prompt_tokens, u.completion_tokens, u.total_tokens) for u in usages] == [(18, 16, 34)] * 2
        assert [u.prompt_tokens_details.cached_tokens for u in usages] == [0, 16]

    def test_a_stream_concatenates_to_the_whole_response(self, served):
        chunks = list(complete(served, stream=True, max_tokens=20, stream_options={"include_usage": True}))
        text = "".join(piece.choices[0].text for piece in chunks if piece.choices)
        assert text == complete(served, max_tokens=20).choices[0].text
        assert [p.choices[0].finish_reason for p in chunks if p.choices][-1] == "length"
        assert chunks[-1].usage.completion_tokens == 20
        assert {p.id for p in chunks} == {chunks[0].id}

    def test_samples_are_indexed_and_repeatable_by_seed(self, served):
        first, again, other = (
            complete(served, n=3, temperature=1.5, seed=seed, max_tokens=12).choices for seed in (7, 7, 8)
        )
        assert [choice.index for choice in first] == [0, 1, 2]
        assert [c.text for c in first] == [c.text for c in again] != [c.text for c in other]
        assert len({choice.text for choice in first}) > 1

    def test_without_a_seed_answers_differ(self, served):
        texts = {complete(served, temperature=1.5, max_tokens=12).choices[0].text for _ in range(4)}
        assert len(texts) > 1

    def test_a_stop_string_ends_the_response_and_is_left_out(self, served):
        text = complete(served, max_tokens=12).choices[0].text
        stopped = complete(served, max_tokens=12, stop=[text[5:7]]).choices[0]
        assert (stopped.text, stopped.finish_reason) == (text[: text.index(text[5:7])], "stop")

    def test_several_prompts_are_answered_in_order(self, served, alone):
        prompts = ["first one", "second", "third of them"]
        answer = complete(served, prompts)
        assert [c.text for c in answer.choices] == [expected(alone, prompt) for prompt in prompts]
        streamed = ["", "", ""]
        for piece in complete(served, prompts, stream=True):
            streamed[piece.choices[0].index] += piece.choices[0].text
        assert streamed == [choice.text for choice in answer.choices]

    def test_token_ids_go_in_and_come_out(self, served):
        answer = complete(served, [97, 98, 99], extra_body={"return_token_ids": True}).choices[0]
        assert answer.prompt_token_ids == [97, 98, 99]
        assert len(answer.token_ids) == 8

    def test_twelve_concurrent_clients_get_what_each_gets_alone(self, served, alone):
        prompts = [f"client number {n}, please" for n in range(12)]
        with ThreadPoolExecutor(12) as pool:
            texts = list(pool.map(lambda prompt: complete(served, prompt).choices[0].text, prompts))
        assert texts == [expected(alone, prompt) for prompt in prompts]
        wait_until(lambda: all_blocks_are_back(served), "giving every block back")


class TestChat:
    MESSAGES = ({"role": "system", "content": "Be short."}, {"role": "user", "content": "Hello"})
    RENDERED = "[system]Be short.[user]Hello[assistant]"

    @pytest.fixture(autouse=True)
    def with_a_template(self, served, monkeypatch):
        template = "{% for m in messages %}[{{ m.role }}]{{ m.content }}{% endfor %}[assistant]"
        monkeypatch.setattr(served.engine.tokenizer, "chat_template", template)

    def chat(self, served, messages=MESSAGES, **fields):
        extra = {"ignore_eos": True, "return_token_ids": True}
        fields = {"temperature": 0, "max_tokens": 8} | fields
        return served.client.chat.completions.create(model=TINY, messages=list(messages), extra_body=extra, **fields)

    def test_the_answer_is_the_engines_to_the_rendered_messages(self, served, alone):
        answer = self.chat(served)
        assert answer.choices[0].message.content == expected(alone, self.RENDERED)
        assert (answer.object, answer.choices[0].message.role) == ("chat.completion", "assistant")
        assert bytes(answer.prompt_token_ids).decode() == self.RENDERED

    def test_a_stream_sends_the_role_once_and_then_content(self, served):
        chunks = [piece.choices[0] for piece in self.chat(served, stream=True)]
        assert [piece.delta.role for piece in chunks][:2] == ["assistant", None]
        text = "".join(piece.delta.content or "" for piece in chunks)
        assert text == self.chat(served).choices[0].message.content
        assert [piece.finish_reason for piece in chunks if piece.finish_reason] == ["length"]

    def test_content_may_come_in_parts(self, served):
        parts = [{"type": "text", "text": "Hel"}, {"type": "text", "text": "lo"}]
        [system, _user] = self.MESSAGES
        answer = self.chat(served, (system, {"role": "user", "content": parts}))
        assert answer.choices[0].message.content == self.chat(served).choices[0].message.content

    def test_without_max_tokens_the_reply_is_limited_by_max_model_len(self, served):
        answer = self.chat(served, max_tokens=None)
        assert answer.usage.total_tokens == CONFIG.max_model_len

    @pytest.mark.parametrize(
        "messages", [[], [{"role": "user"}], ["hi"], [{"role": "user", "content": [{"type": "image_url"}]}]]
    )
    def test_invalid_messages_are_refused(self, served, messages):
        with pytest.raises(openai.BadRequestError) as error:
            self.chat(served, messages)
        assert error.value.body["param"] == ("messages[0]" if messages else "messages")

    @pytest.mark.parametrize("absent", [{}, {"content": None}, {"content": []}, {"content": "", "tool_calls": []}])
    def test_an_assistant_message_may_be_empty(self, served, absent):
        [system, user] = self.MESSAGES
        answer = self.chat(served, (system, {"role": "assistant", **absent}, user))
        assert bytes(answer.prompt_token_ids).decode() == "[system]Be short.[assistant][user]Hello[assistant]"

    @pytest.mark.parametrize("role", ["user", "system", "tool"])
    @pytest.mark.parametrize("absent", [{}, {"content": None}])
    def test_another_message_without_content_is_refused_by_name(self, served, role, absent):
        with pytest.raises(openai.BadRequestError) as error:
            self.chat(served, (self.MESSAGES[0], {"role": role, **absent}))
        assert error.value.body["param"] == "messages[1]"
        assert error.value.body["message"].startswith("messages[1] needs a content of text;")

    @pytest.mark.parametrize(
        ("message", "sentence"),
        [
            ("hi", "messages[1] is not what a message has: Expected `object`, got `str`."),
            ({"role": 1, "content": "a"}, "messages[1].role is not what a message has: Expected `str`, got `int`."),
            ({"content": "a"}, "messages[1] is not what a message has: Object missing required field `role`."),
            (
                {"role": "user", "content": [{"type": "image_url"}]},
                "messages[1].content[0].type is not what a message has: Invalid enum value 'image_url'.",
            ),
            (
                {"role": "assistant", "content": "", "tool_calls": [{}]},
                "messages[1].tool_calls is not what a message has: Expected `array` of length <= 0.",
            ),
        ],
    )
    def test_what_is_wrong_within_a_message_is_named(self, served, message, sentence):
        with pytest.raises(openai.BadRequestError) as error:
            self.chat(served, (self.MESSAGES[0], message))
        assert (error.value.body["param"], error.value.body["message"]) == ("messages[1]", sentence)

    CONDITIONAL = (
        "{% for m in messages %}[{{ m.role }}]{{ m.content | trim if strip else m.content }}"
        "{% if m.name %}({{ m.name }}){% endif %}<end>{% endfor %}{% if add_generation_prompt %}[assistant]{% endif %}"
    )

    @pytest.mark.parametrize(
        ("fields", "strip", "rendered"),
        [
            ({}, "false", "[user]Hi<end>[assistant] Well, <end>[assistant]"),
            ({"add_generation_prompt": False}, "false", "[user]Hi<end>[assistant] Well, <end>"),
            ({"continue_final_message": True}, "false", "[user]Hi<end>[assistant] Well, "),
            (
                {"continue_final_message": True, "add_generation_prompt": False},
                "true",
                "[user]Hi<end>[assistant]Well,",
            ),
        ],
    )
    def test_add_generation_prompt_and_continue_final_message(self, served, monkeypatch, fields, strip, rendered):
        template = self.CONDITIONAL.replace("strip", strip)
        monkeypatch.setattr(served.engine.tokenizer, "chat_template", template)
        messages = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": " Well, "}]
        answer = served.client.chat.completions.create(
            model=TINY, messages=messages, max_tokens=1, extra_body={"return_token_ids": True, **fields}
        )
        assert bytes(answer.prompt_token_ids).decode() == rendered

    def test_continue_final_message_excludes_add_generation_prompt(self, served):
        fields = {"continue_final_message": True, "add_generation_prompt": True}
        with pytest.raises(openai.BadRequestError) as error:
            served.client.chat.completions.create(model=TINY, messages=list(self.MESSAGES), extra_body=fields)
        assert error.value.body["param"] == "continue_final_message"

    def test_a_template_that_drops_the_last_message_cannot_continue_it(self, served, monkeypatch):
        monkeypatch.setattr(served.engine.tokenizer, "chat_template", "{{ messages[0].content }}")
        fields = {"continue_final_message": True}
        with pytest.raises(openai.BadRequestError) as error:
            served.client.chat.completions.create(model=TINY, messages=list(self.MESSAGES), extra_body=fields)
        assert error.value.body["param"] == "continue_final_message"

    def test_the_name_of_a_message_reaches_the_template(self, served, monkeypatch):
        monkeypatch.setattr(served.engine.tokenizer, "chat_template", self.CONDITIONAL.replace("strip", "false"))
        answer = self.chat(served, [{"role": "user", "content": "Hi", "name": "Ada"}])
        assert bytes(answer.prompt_token_ids).decode() == "[user]Hi(Ada)<end>[assistant]"

    def test_a_template_error_that_is_not_utf_8_is_still_returned(self, served, monkeypatch):
        monkeypatch.setattr(
            served.engine.tokenizer, "chat_template", "{{ raise_exception('no role ' + messages[0].role) }}"
        )
        with pytest.raises(HttpError, match=r"status 400: .*no role \ud800"):
            send(served, b'{"messages": [{"role": "\\ud800", "content": "x"}]}', "/v1/chat/completions")

    def test_a_prompt_sent_as_chat_is_found_by_its_tokens(self, served):
        addresses = ServerAddresses(events_address(served.publisher.endpoint), None, http_address(served.url))
        watcher = RemoteServer(addresses)
        watcher.start()
        wait_until(lambda: watcher.is_connected and watcher.facts.model == TINY, "attaching")
        wait_until(lambda: says_something_that_is_heard(served, watcher), "hearing the server")
        empty_the_cache(served)  # what other chats have stored before is not told again
        asked = send_prompt(watcher, PromptRequest("how many blocks?", 4, as_chat=True))
        watcher.stop()
        assert (asked.is_exact, asked.num_prompt_tokens) == (True, len("[user]how many blocks?[assistant]"))
        assert len(asked.stored) == (asked.num_prompt_tokens + 3) // 4


class TestTokens:
    """vLLM's routes: text to token ids and back."""

    TEXT = "zwölf\n«x»"

    def tokenize(self, served, **fields):
        return post_json(http_address(served.url), "/tokenize", fields, seconds=30)

    def detokenize(self, served, **fields):
        return post_json(http_address(served.url), "/detokenize", fields, seconds=30)

    def test_text_to_token_ids_and_back(self, served):
        ids = list(self.TEXT.encode())
        assert self.tokenize(served, prompt=self.TEXT) == {"count": 12, "max_model_len": 160, "tokens": ids}
        assert self.detokenize(served, model=TINY, tokens=ids) == {"prompt": self.TEXT}
        assert self.detokenize(served, tokens=[]) == {"prompt": ""}

    def test_special_tokens_are_written_out_unless_they_are_to_be_skipped(self, served):
        assert self.detokenize(served, tokens=[256, 97, 257]) == {"prompt": "<bos>a<eos>"}
        assert self.detokenize(served, tokens=[256, 97, 257], skip_special_tokens=True) == {"prompt": "a"}

    @pytest.mark.parametrize(
        ("fields", "sentence"),
        [
            ({}, "tokens must be a list of at most 65536 token ids."),
            ({"tokens": [1, -1]}, "tokens must be a list of at most 65536 token ids."),
            ({"tokens": [[1]]}, "tokens must be a list of at most 65536 token ids."),
            ({"tokens": [0] * 65_537}, "tokens must be a list of at most 65536 token ids."),
            ({"tokens": [97, 258]}, "tokens holds 258; this model's ids end at 257."),
            ({"tokens": [97], "model": "gpt-9"}, "The model 'gpt-9' is not served here;"),
        ],
    )
    def test_what_cannot_be_detokenized_is_refused(self, served, fields, sentence):
        with pytest.raises(HttpError) as error:
            self.detokenize(served, **fields)
        assert sentence in str(error.value)

    def test_messages_are_not_tokenized(self, served):
        with pytest.raises(HttpError, match="messages is not supported by this server; leave it out"):
            self.tokenize(served, messages=[{"role": "user", "content": "x"}])


class TestErrors:
    @pytest.mark.parametrize(
        ("fields", "param", "sentence"),
        [
            ({"temperature": 3}, "temperature", "temperature must be a number from 0 to 2."),
            ({"top_p": -1}, "top_p", "top_p must be a number above 0 and at most 1."),
            ({"top_p": 0}, "top_p", "top_p must be a number above 0 and at most 1."),
            ({"n": 0}, "n", "n must be a whole number from 1 to 128."),
            ({"max_tokens": -1}, "max_tokens", "max_tokens must be a whole number from 0 to 2147483648."),
            ({"prompt": []}, "prompt", "prompt must be text, token ids, or a list of 1 to 64 of either."),
            ({"prompt": [["a"]]}, "prompt", "prompt must be text, token ids, or a list of 1 to 64 of either."),
            ({"stop": [""]}, "stop", "stop must be a text or a list of at most 16 texts, none of them empty."),
            ({"echo": True}, "echo", "echo is not supported by this server; leave it out."),
            ({"logprobs": 2}, "logprobs", "logprobs is not supported by this server; leave it out."),
            ({"prompt": ""}, "prompt", "The prompt is empty: at least 1 token is needed."),
            ({"prompt": [999_999]}, "prompt", "Token id 999999 is outside the vocabulary of 0 to"),
            ({"prompt": ["a", [98]]}, "prompt", "prompt must be text, token ids, or a list of 1 to 64 of either."),
            (
                {"prompt": "x" * 200},
                "prompt",
                "The prompt has 200 tokens; with max_model_len 160 it may have at most 159.",
            ),
            ({"n": 9}, "n", "n is 9; max_num_seqs allows 8 sequences at once."),
            ({"n": 8, "max_tokens": 120}, "max_tokens", "It may need 244 blocks of 4; the pool has 48."),
            ({"n": 8, "max_tokens": 120, "prompt": [999_999]}, "prompt", "Token id 999999 is outside the vocabulary"),
            ({"stop": ["a"] * 17}, "stop", "stop must be a text or a list of at most 16 texts, none of them empty."),
            ({"seed": 1 << 63}, "seed", "seed must be a whole number of 64 bits."),
            ({"stream_options": {"q": 1}}, "stream_options", "stream_options must be an object;"),
        ],
    )
    def test_errors_have_the_standard_shape(self, served, fields, param, sentence):
        with pytest.raises(openai.BadRequestError) as error:
            complete(served, **fields)
        assert error.value.body["message"].startswith(sentence)
        assert (error.value.body["type"], error.value.body["param"]) == ("invalid_request_error", param)

    def test_another_model_is_not_found(self, served):
        with pytest.raises(openai.NotFoundError) as error:
            served.client.completions.create(model="gpt-9", prompt="x")
        assert error.value.body["code"] == "model_not_found"

    def test_a_model_without_a_chat_template_is_refused(self, served):
        with pytest.raises(openai.BadRequestError, match="This model has no chat template"):
            served.client.chat.completions.create(model=TINY, messages=[{"role": "user", "content": "hi"}])

    @pytest.mark.parametrize("field", ["temperature", "top_p", "top_k", "max_tokens", "n", "seed"])
    @pytest.mark.parametrize("number", ["1" + "0" * 400, "-1" + "0" * 400, "1e400", "1" * 5000, "NaN", "Infinity"])
    def test_a_number_out_of_bounds_is_refused_by_its_field(self, served, field, number):
        body = f'{{"prompt": "a", "{field}": {number}}}'.encode()
        with pytest.raises(HttpError, match=rf"status 400: {field} must be a (whole )?number"):
            send(served, body)

    @pytest.mark.parametrize(
        ("field", "value"),
        [
            ("stop_token_ids", [5]), ("min_p", 0.1), ("min_tokens", 3), ("repetition_penalty", 1.2),
            ("use_beam_search", True), ("prompt_logprobs", 0), ("guided_choice", ["a"]), ("guided_json", {}),
            ("truncate_prompt_tokens", 4), ("cache_salt", "s"), ("tool_choice", "required"), ("bad_words", ["a"]),
            ("allowed_token_ids", [5]), ("include_stop_str_in_output", True), ("skip_special_tokens", False),
            ("chat_template_kwargs", {"a": 1}), ("continue_final_message", True), ("add_generation_prompt", False),
            ("logprobs", 0), ("best_of", True), ("messages", []), ("max_completion_tokens", 3), ("no_such_field", 1),
        ],
    )  # fmt: skip
    def test_an_unsupported_field_is_refused_by_name(self, served, field, value):
        with pytest.raises(openai.BadRequestError) as error:
            complete(served, extra_body={field: value})
        assert error.value.body["message"] == f"{field} is not supported by this server; leave it out."
        assert (error.value.body["param"], error.value.body["code"]) == (field, "unsupported")

    def test_an_unknown_field_name_is_shown_escaped(self, served):
        with pytest.raises(HttpError, match=r"status 400: '\\ud800 ' is not supported"):
            send(served, b'{"prompt": "a", "\\ud800 ": 1}')
        with pytest.raises(HttpError, match=r"status 400: messages\[0\] is not what a message has"):
            send(served, b'{"messages": [{"\\ud800": 1}]}', "/v1/chat/completions")

    @pytest.mark.parametrize(
        ("field", "value"),
        [
            ("user", "me"), ("metadata", {"a": "b"}), ("store", True), ("service_tier", "auto"), ("min_p", 0),
            ("stop_token_ids", []), ("skip_special_tokens", True), ("presence_penalty", 0.0), ("seed", None),
            ("tool_choice", "none"), ("response_format", {"type": "text"}), ("guided_json", None),
        ],
    )  # fmt: skip
    def test_an_unsupported_field_at_its_default_is_accepted(self, served, alone, field, value):
        assert complete(served, extra_body={field: value}).choices[0].text == expected(alone, PROMPT)

    @pytest.mark.parametrize("body", [b"", b"[]", b"{", b"\xff", b"[" * 100_000])
    def test_a_body_that_is_no_object_is_refused(self, served, body):
        request = urllib.request.Request(
            f"{served.url}/v1/completions", body, {"Content-Type": "application/json"}, method="POST"
        )
        with pytest.raises(urllib.error.HTTPError) as error:
            urllib.request.urlopen(request, timeout=60)
        assert error.value.code == 400
        assert json.loads(error.value.read())["error"]["type"] == "invalid_request_error"

    def test_a_cross_site_form_is_refused(self, served):
        request = urllib.request.Request(f"{served.url}/v1/completions", b"{}", {"Content-Type": "text/plain"})
        with pytest.raises(urllib.error.HTTPError) as error:
            urllib.request.urlopen(request, timeout=60)
        assert error.value.code == 415

    def test_another_host_name_is_refused(self, served):
        request = urllib.request.Request(f"{served.url}/v1/models", headers={"Host": "evil.example"})
        with pytest.raises(urllib.error.HTTPError) as error:
            urllib.request.urlopen(request, timeout=60)
        assert error.value.code == 400

    def test_a_body_that_is_too_large_is_not_read_to_its_end(self, served, monkeypatch):
        monkeypatch.setattr("engine.serve.api.MAX_BODY", 1000)
        with pytest.raises(HttpError, match=r"status 413: The request has more than 1000 bytes"):
            post_json(http_address(served.url), "/v1/completions", {"prompt": "x" * 2000}, seconds=60)

    def test_an_unknown_route_is_404(self, served):
        with pytest.raises(HttpError, match=r"answered with status 404: Not Found\.$"):
            get(http_address(served.url), "/v1/nothing", seconds=30)


class TestCancelling:
    @pytest.fixture(autouse=True)
    def steps_take_a_while(self, served, monkeypatch):
        step = served.engine.step

        def slow_step():
            time.sleep(0.05)  # what takes a hundred steps is not over before a busy machine has looked
            return step()

        monkeypatch.setattr(served.engine, "step", slow_step)

    def test_a_closed_stream_frees_its_blocks(self, served):
        stream = complete(served, "a long one " * 4, stream=True, max_tokens=100)
        next(iter(stream))
        assert metrics(served).num_running == 1
        stream.close()
        wait_until(lambda: all_blocks_are_back(served), "giving the blocks back")

    def test_a_disconnected_client_frees_its_blocks(self, served):
        before = metrics(served).generation_tokens
        body = json.dumps({"prompt": "gone soon", "max_tokens": 120, "ignore_eos": True}).encode()
        head = "POST /v1/completions HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
        head += f"Content-Length: {len(body)}"
        with socket.create_connection(("127.0.0.1", urlsplit(served.url).port), 60) as line:
            line.sendall(head.encode() + b"\r\n\r\n" + body)
            wait_until(lambda: metrics(served).num_running == 1, "running")
        wait_until(lambda: all_blocks_are_back(served), "giving the blocks back")
        assert metrics(served).generation_tokens - before < 120

    def test_a_server_outlives_the_longest_trace(self, served, monkeypatch):
        monkeypatch.setattr("engine.trace.trace.MAX_STEPS", 10)
        assert [complete(served, max_tokens=8).usage.completion_tokens for _ in range(4)] == [8] * 4

    @pytest.mark.parametrize("way", ["fork", "prefix_cache"])
    def test_cached_token_counts_are_released_with_the_request(self, monkeypatch, way):
        statistics = StatLogger()
        monkeypatch.setattr("engine.serve.server.StatLogger", lambda: statistics)
        with served_engine(replace(CONFIG, parallel_sampling=way)) as served:
            usages = [complete(served, "usage " * 3, n=3).usage for _ in range(2)]
            assert [u.prompt_tokens_details.cached_tokens for u in usages] == [0, 16]
            until_equal(lambda: dict(statistics.num_cached_tokens), {})

    def test_finished_requests_are_released(self, served):
        complete(served)
        wait_until(lambda: all_blocks_are_back(served), "giving every block back")
        until_equal(lambda: (served.engine.groups, len(served.engine.trace)), ((), 0))


class TestWatching:
    @pytest.fixture
    def watcher(self, served) -> Iterator[RemoteServer]:
        addresses = ServerAddresses(
            events_address(served.publisher.endpoint),
            events_address(served.publisher.replay_endpoint),
            http_address(served.url),
        )
        server = RemoteServer(addresses)
        server.start()
        wait_until(lambda: server.is_connected and bool(server.samples), "attaching")
        yield server
        server.stop()

    def test_kv_events_equal_the_pools_cached_blocks(self, served, watcher):
        complete(served, "seen by the connector", max_tokens=12)

        def held() -> set:
            return set(served.engine.kv.pool._cached_blocks)

        wait_until(lambda: set(watcher.at(watcher.last_step).prefix_cache.of(0).blocks) == held(), "the same content")
        view = watcher.at(watcher.last_step).prefix_cache
        assert (view.partial_since, len(held()) > 0) == (None, True)

    def test_metrics_equal_the_engines_counters(self, served, watcher):
        wait_until(lambda: watcher.facts.model == TINY, "learning the model")
        sample = watcher.samples[-1]
        assert (sample.server, sample.num_blocks, sample.block_size) == (OURS, 48, 4)
        assert watcher.facts.num_blocks == 48
        assert watcher.problems() == []

    def test_a_prompt_is_found_again_block_by_block(self, served, watcher):
        wait_until(lambda: watcher.facts.model == TINY, "learning the model")
        wait_until(lambda: says_something_that_is_heard(served, watcher), "hearing the server")
        first = send_prompt(watcher, PromptRequest("which blocks are mine?", 6))
        assert (first.is_exact, first.num_prompt_tokens) == (True, 22)
        assert (len(first.stored), len(first.found)) == (6, 0)  # (22 + 5 written tokens) // 4
        again = send_prompt(watcher, PromptRequest("which blocks are mine?", 6))
        assert (again.text, len(again.found), again.found | again.stored) == (first.text, 5, first.stored)
        [twice] = again.stored  # behind the prompt nothing is looked up: computed and stored a second time
        assert watcher.at(watcher.last_step).prefix_cache.of(0).blocks[twice].num_copies == 2

    def test_clearing_the_cache_is_published(self, served, watcher):
        complete(served)
        empty_the_cache(served)
        wait_until(lambda: watcher.at(watcher.last_step).prefix_cache.num_blocks == 0, "an empty view")

    def test_prefix_hits_are_counted_in_tokens(self, served):
        complete(served, "count my prefix!", max_tokens=1)
        before = metrics(served)
        complete(served, "count my prefix!", max_tokens=1)
        after = metrics(served)
        assert (after.prefix_queries - before.prefix_queries, after.prefix_hits - before.prefix_hits) == (16, 12)
        assert after.num_steps > before.num_steps and after.step_seconds > before.step_seconds


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--num-blocks", "0", "--no-events"], "num_blocks must be a whole number of at least 1; it is 0."),
        (["--attention-backend", "fast", "--no-events"], "attention_backend must be one of auto, triton, cpu,"),
        (["--events", "tcp://256.0.0.1:1"], "Events cannot be published at tcp://256.0.0.1:1: "),
    ],
)
def test_invalid_settings_are_reported_before_serving(capsys, arguments, sentence):
    assert main(["--model", TINY, *arguments]) == 1
    assert capsys.readouterr().err.startswith(sentence)


def test_an_engine_that_fails_ends_every_request_with_an_error(monkeypatch):
    with served_engine() as served:
        failing = threading.Event()

        def fail():
            failing.set()
            raise RuntimeError("out of order")

        monkeypatch.setattr(served.engine, "step", fail)
        with pytest.raises(openai.InternalServerError) as error:
            complete(served)
        assert failing.is_set()
        assert error.value.body["message"].startswith("The engine failed at a step")
        with pytest.raises(HttpError, match="status 503: The engine failed"):
            post_json(http_address(served.url), "/v1/completions", {"prompt": "x"}, seconds=60)
