"""Token ids as text through a server's own /detokenize: vLLM's way, SGLang's, and servers that do not do it."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Callable, Iterator, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from engine.remote import detokenizer as detokenizer_module
from engine.remote.addresses import http_address
from engine.remote.detokenizer import SEPARATOR, Detokenizer, TokenIds
from tests.helpers.app_server import free_port
from tests.helpers.kv_stream import wait_until

VOCABULARY = [*SEPARATOR, " the", " dog", "\n", "ö", "<|im_start|>", "one <|~|> in itself"]
THE, DOG, LINE, UMLAUT, START, HOSTILE = range(len(SEPARATOR), len(VOCABULARY))
Answer = tuple[int, dict[str, Any]]


class Served:
    """What a test's server answers, and what it was asked for: path and body of each POST."""

    def __init__(self, detokenize: Callable[[dict[str, Any]], Answer], tokenize: bool = True) -> None:
        self.detokenize = detokenize
        self.has_tokenize = tokenize
        self.model = "m"
        self.asked: list[tuple[str, dict[str, Any]]] = []

    def answer(self, path: str, body: dict[str, Any]) -> Answer:
        self.asked.append((path, body))
        if path == "/detokenize":
            return self.detokenize(body)
        if path == "/tokenize" and self.has_tokenize:
            return 200, {"tokens": [VOCABULARY.index(letter) for letter in body["prompt"]]}
        return 404, {"error": {"message": "Not Found"}}


def vllm(body: dict[str, Any]) -> Answer:
    """One sequence, one text; an id that is none is an error, as everywhere."""
    if any(token >= len(VOCABULARY) for token in body["tokens"]):
        return 400, {"error": {"message": "out of vocabulary"}}
    return 200, {"prompt": "".join(VOCABULARY[token] for token in body["tokens"])}


def sentencepiece(body: dict[str, Any]) -> Answer:
    """As vLLM with a vocabulary that begins words with a blank, and a text without one."""
    text = "".join(f" {token}" if token == "<" else token for token in (VOCABULARY[t] for t in body["tokens"]))
    return 200, {"prompt": text.removeprefix(" ")}


def sglang(body: dict[str, Any]) -> Answer:
    tokens = body["tokens"]
    if tokens and isinstance(tokens[0], int):
        return 200, {"text": "".join(VOCABULARY[token] for token in tokens)}
    assert body["skip_special_tokens"] is False
    return 200, {"text": ["".join(VOCABULARY[token] for token in sequence) for sequence in tokens]}


@contextlib.contextmanager
def detokenizer_of(served: Served) -> Iterator[Detokenizer]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._say(200, {"data": [{"id": served.model}]})

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            self._say(*served.answer(self.path, body))

        def _say(self, status: int, answer: dict[str, Any]) -> None:
            self.send_response(status)
            self.end_headers()
            self.wfile.write(json.dumps(answer).encode())

        def log_message(self, *_arguments: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    made = Detokenizer(http_address(f"http://127.0.0.1:{server.server_port}"))
    made.start()
    try:
        yield made
    finally:
        made.stop()
        server.shutdown()
        server.server_close()


def ask_at_once(detokenizer: Detokenizer, wanted: Sequence[TokenIds]) -> None:
    """So that the thread sees all of them in one look."""
    wait_until(lambda: detokenizer.state == "answers", "learning how the server answers")
    with detokenizer._lock:
        detokenizer._waiting.update(dict.fromkeys(wanted))


def texts_of(detokenizer: Detokenizer, *wanted: Sequence[int]) -> list[str | None]:
    wait_until(lambda: detokenizer.state == "answers", "learning how the server answers")
    for sequence in wanted:
        detokenizer.text(sequence)
    wait_until(lambda: detokenizer.num_waiting == 0, "getting the texts")
    return [detokenizer.text(sequence) for sequence in wanted]


@pytest.fixture(autouse=True)
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(detokenizer_module, "SECONDS_BETWEEN_REQUESTS", 0.0)


SEQUENCES: list[TokenIds] = [(THE,), (DOG,), (LINE,), (UMLAUT,), (START, THE, DOG), (THE, THE)]
TEXTS = [" the", " dog", "\n", "ö", "<|im_start|> the dog", " the the"]


@pytest.mark.parametrize("answer", [vllm, sentencepiece, sglang])
def test_many_texts_come_with_one_request_and_are_kept(answer: Callable[[dict[str, Any]], Answer]) -> None:
    served = Served(answer)
    with detokenizer_of(served) as detokenizer:
        ask_at_once(detokenizer, SEQUENCES)
        learned = len(served.asked)
        assert texts_of(detokenizer, *SEQUENCES) == TEXTS
        assert (learned, len(served.asked)) == (2, 3)
        assert {body["model"] for _path, body in served.asked} == {"m"}
        assert texts_of(detokenizer, *SEQUENCES) == TEXTS
        assert len(served.asked) == 3


def test_without_tokenize_each_sequence_is_a_request() -> None:
    served = Served(vllm, tokenize=False)
    with detokenizer_of(served) as detokenizer:
        ask_at_once(detokenizer, SEQUENCES)
        assert texts_of(detokenizer, *SEQUENCES) == TEXTS
    assert sorted(body["tokens"] for _path, body in served.asked[2:]) == sorted([*ids] for ids in SEQUENCES)


def test_a_text_with_the_separator_within_it_is_asked_for_alone() -> None:
    with detokenizer_of(Served(vllm)) as detokenizer:
        wanted = [(THE,), (HOSTILE,), (DOG,)]
        assert texts_of(detokenizer, *wanted) == [" the", "one <|~|> in itself", " dog"]


def test_ids_that_the_server_refuses_have_no_text_and_the_others_do() -> None:
    with detokenizer_of(Served(vllm)) as detokenizer:
        assert texts_of(detokenizer, (THE,), (999,), (DOG,), (THE, 999)) == [" the", None, " dog", None]
        assert (detokenizer.state, detokenizer.problem) == ("answers", "")


def test_a_server_without_the_route_is_asked_once_and_says_why() -> None:
    served = Served(lambda _body: (404, {"error": {"message": "Not Found"}}), tokenize=False)
    with detokenizer_of(served) as detokenizer:
        wait_until(lambda: detokenizer.state == "refuses", "the refusal")
        assert detokenizer.problem == f"{detokenizer.address}/detokenize answered with status 404: Not Found"
        assert detokenizer.text((THE,)) is None
        assert (detokenizer.num_waiting, len(served.asked)) == (0, 2)


@pytest.mark.parametrize("answer", [{}, {"prompt": 3}, {"text": None}, {"prompt": ["a"]}])
def test_an_answer_without_a_text_is_a_refusal(answer: dict[str, Any]) -> None:
    with detokenizer_of(Served(lambda _body: (200, answer))) as detokenizer:
        wait_until(lambda: detokenizer.state == "refuses", "the refusal")
        assert detokenizer.problem == f"{detokenizer.address}/detokenize answered without a text."


def test_a_server_that_refuses_every_id_is_asked_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(detokenizer_module, "MAX_UNREADABLE", 4)
    served = Served(vllm)
    with detokenizer_of(served) as detokenizer:
        wait_until(lambda: detokenizer.state == "answers", "learning how the server answers")
        for token in range(1_000, 1_050):
            detokenizer.text((token,))
        wait_until(lambda: detokenizer.state == "refuses", "giving it up")
        assert "status 400: out of vocabulary" in detokenizer.problem


def test_a_server_that_comes_later_is_asked_then(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(detokenizer_module, "SECONDS_UNTIL_RETRY", 0.02)
    port = free_port()
    detokenizer = Detokenizer(http_address(f"http://127.0.0.1:{port}"))
    detokenizer.start()
    wait_until(lambda: detokenizer.problem != "", "the first try")
    assert (detokenizer.state, detokenizer.text((THE,))) == ("unknown", None)
    detokenizer.stop()
    assert not detokenizer.is_alive()


def test_another_model_behind_the_address_has_other_texts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(detokenizer_module, "SECONDS_UNTIL_RETRY", 0.02)
    served = Served(vllm)
    with detokenizer_of(served) as detokenizer:
        assert texts_of(detokenizer, (THE,)) == [" the"]
        served.model, served.detokenize = "other", lambda body: (200, {"prompt": "x" * len(body["tokens"])})
        detokenizer._must_learn = True  # as after a lost connection
        detokenizer.text((DOG,))
        wait_until(lambda: detokenizer.num_waiting == 0 and not detokenizer._must_learn, "learning anew")
        assert texts_of(detokenizer, (THE,), (DOG, DOG)) == ["x", "xx"]


def test_what_is_kept_and_what_waits_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(detokenizer_module, "MAX_KEPT", 3)
    monkeypatch.setattr(detokenizer_module, "MAX_WAITING", 4)
    with detokenizer_of(Served(vllm)) as detokenizer:
        ask_at_once(detokenizer, [(THE,), (DOG,), (LINE,), (UMLAUT,)])
        detokenizer.text((THE,))
        wait_until(lambda: detokenizer.num_waiting == 0, "getting the texts")
        assert len(detokenizer._texts) == 3
    silent = Detokenizer(http_address("http://127.0.0.1:1"))
    for token in range(9):
        silent.text((token,))
    assert list(silent._waiting) == [(5,), (6,), (7,), (8,)]
