"""The HTTP side against servers that misbehave: every answer is bounded, and every failure is one sentence."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import ClassVar

import pytest

from engine.remote import http as http_module
from engine.remote import server as server_module
from engine.remote.addresses import Address, events_address, http_address
from engine.remote.http import HttpError, get, get_json, post_json
from engine.remote.scraper import Scraper
from engine.remote.server import RemoteServer, ServerAddresses
from tests.helpers.app_server import free_port
from tests.helpers.kv_stream import wait_until


class Misbehaving(BaseHTTPRequestHandler):
    asked: ClassVar[list[str]] = []

    def do_GET(self) -> None:
        self.asked.append(self.path)
        getattr(self, "answer_" + self.path.strip("/").replace("/", "_"), self.answer_nothing)()

    def do_POST(self) -> None:
        self.do_GET()

    def send(self, status: int, body: bytes, **headers: str) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def answer_nothing(self) -> None:
        self.send(404, b"<html>no</html>")

    def answer_redirect(self) -> None:
        self.send(302, b"", Location="/secret")

    def answer_secret(self) -> None:
        self.send(200, b"secret")

    def answer_error(self) -> None:
        self.send(400, b'{"error": {"message": "The prompt is too long."}}')

    def answer_broken(self) -> None:
        self.send(200, b"{not json")

    def answer_deep(self) -> None:
        self.send(200, b"[" * 200_000)

    def answer_endless(self) -> None:
        try:
            self.send(200, b"")
            while True:
                self.wfile.write(b"x" * 65_536)
        except OSError:
            pass

    def answer_dripping(self) -> None:
        try:
            self.send(200, b"")
            for _ in range(100):
                self.wfile.write(b"x")
                time.sleep(0.05)
        except OSError:
            pass

    def answer_v1_models(self) -> None:
        self.send(200, b'{"data": [{"id": ["not", "a", "name"]}]}')

    def answer_metrics(self) -> None:
        self.send(200, b"\xff\xfe vllm:num_requests_running 3\nvllm:num_requests_running 2\n")

    def log_message(self, *_arguments: object) -> None:
        """Quiet."""


@pytest.fixture(scope="module")
def address() -> Iterator[Address]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Misbehaving)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield http_address(f"http://127.0.0.1:{server.server_address[1]}")
    server.shutdown()
    server.server_close()


def test_redirects_are_not_followed(address):
    Misbehaving.asked.clear()
    with pytest.raises(HttpError, match=r"/redirect answered with status 302\.$"):
        get(address, "/redirect", seconds=30)
    assert Misbehaving.asked == ["/redirect"]


def test_the_servers_own_complaint_is_told(address):
    with pytest.raises(HttpError, match=r"/error answered with status 400: The prompt is too long\.$"):
        post_json(address, "/error", {}, seconds=30)


@pytest.mark.parametrize("path", ["/broken", "/deep"])
def test_what_is_no_json_is_told(address, path):
    with pytest.raises(HttpError, match=r"answered with something that is not JSON\.$"):
        get_json(address, path, seconds=30)


def test_an_endless_answer_is_cut_off(address, monkeypatch):
    monkeypatch.setattr(http_module, "MAX_BYTES", 1 << 20)
    with pytest.raises(HttpError, match=r"/endless answered with more than 1 MB\.$"):
        get(address, "/endless", seconds=60)


def test_an_answer_that_drips_in_is_given_up(address):
    started = time.monotonic()
    with pytest.raises(HttpError, match=r"did not answer within 0\.3 seconds\.$"):
        get(address, "/dripping", seconds=0.3)
    assert time.monotonic() - started < 4, "all of it takes five seconds"


def test_nothing_listens():
    port = free_port()
    with pytest.raises(HttpError) as error:
        get(http_address(f"http://127.0.0.1:{port}"), "/metrics")
    assert str(error.value) == f"Nothing listens at http://127.0.0.1:{port}."


def test_events_that_are_off_are_told_with_the_option_to_set(address):
    server = RemoteServer(ServerAddresses(events_address(f"tcp://127.0.0.1:{free_port()}"), None, address))
    server.start()
    wait_until(lambda: bool(server.samples), "a look at the metrics")
    [problem] = server.problems()
    server.stop()
    assert "events are off. Start it with --kv-events-config '{\"enable_kv_cache_events\": true," in problem
    assert problem.endswith('"replay_endpoint": "tcp://*:5558"}\'. Keep the *: with an address in its place the server '
                            "connects out instead of listening.")  # fmt: skip


def test_a_port_of_another_kind_is_told(address, monkeypatch):
    monkeypatch.setattr(server_module, "SECONDS_BETWEEN_WATCHES", 0.1)
    endpoint = events_address(str(address).replace("http", "tcp"))
    server = RemoteServer(ServerAddresses(endpoint))
    server.start()
    said = f"Something listens at {endpoint}, but it publishes no KV events. Is it the right port?"
    wait_until(lambda: server.problems() == [said], "noticing")
    server.stop()


def test_a_look_takes_what_it_can_and_keeps_failures_in_words(address):
    scraper = Scraper(address)
    scraper.look()
    assert (scraper.samples[-1].num_running, scraper.model) == (2, "['not', 'a', 'name']")
    away = Scraper(http_address(f"http://127.0.0.1:{free_port()}"))
    away.look()
    assert away.samples == () and away.problem.startswith("Nothing listens at")
