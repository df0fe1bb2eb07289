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

    def answer_ray_metrics(self) -> None:
        self.send(200, b'ray_vllm_num_requests_running{ReplicaId="a"} 3.0\nray_node_cpu_count 2\n')

    def answer_other_metrics(self) -> None:
        self.send(200, b"tgi_queue_size 3\n")

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


def test_the_servers_error_message_is_reported(address):
    with pytest.raises(HttpError, match=r"/error answered with status 400: The prompt is too long\.$"):
        post_json(address, "/error", {}, seconds=30)


@pytest.mark.parametrize("path", ["/broken", "/deep"])
def test_invalid_json_is_reported(address, path):
    with pytest.raises(HttpError, match=r"answered with something that is not JSON\.$"):
        get_json(address, path, seconds=30)


def test_an_endless_response_is_cut_off(address, monkeypatch):
    monkeypatch.setattr(http_module, "MAX_BYTES", 1 << 20)
    with pytest.raises(HttpError, match=r"/endless answered with more than 1 MB\.$"):
        get(address, "/endless", seconds=60)


def test_a_slow_response_times_out(address):
    started = time.monotonic()
    with pytest.raises(HttpError, match=r"did not answer within 0\.3 seconds\.$"):
        get(address, "/dripping", seconds=0.3)
    assert time.monotonic() - started < 4, "all of it takes five seconds"


def test_a_refused_connection_is_reported():
    port = free_port()
    with pytest.raises(HttpError) as error:
        get(http_address(f"http://127.0.0.1:{port}"), "/metrics")
    assert str(error.value) == f"Nothing listens at http://127.0.0.1:{port}."


def test_disabled_events_are_reported_with_the_option_to_set(address):
    server = RemoteServer(ServerAddresses(events_address(f"tcp://127.0.0.1:{free_port()}"), None, address))
    server.start()
    wait_until(lambda: bool(server.samples), "a look at the metrics")
    [problem] = server.problems()
    server.stop()
    assert 'events are off. Start it with --kv-events-config \'{"enable_kv_cache_events": true,' in problem
    assert problem.endswith('"replay_endpoint": "tcp://*:5558"}\'. Keep the *: with an address in its place the server '
                            "connects out instead of listening.")  # fmt: skip


def test_a_port_of_another_protocol_is_reported(address, monkeypatch):
    monkeypatch.setattr(server_module, "SECONDS_BETWEEN_CHECKS", 0.1)
    endpoint = events_address(str(address).replace("http", "tcp"))
    server = RemoteServer(ServerAddresses(endpoint))
    server.start()
    said = f"Something listens at {endpoint}, but it publishes no KV events. Is it the right port?"
    wait_until(lambda: server.problems() == [said], "noticing")
    server.stop()


def test_a_probe_reads_what_it_can_and_reports_failures(address):
    scraper = Scraper(address)
    scraper.scrape()
    assert (scraper.samples[-1].num_running, scraper.model) == (2, "['not', 'a', 'name']")
    away = Scraper(http_address(f"http://127.0.0.1:{free_port()}"))
    away.scrape()
    assert away.samples == () and away.problem.startswith("Nothing listens at")


def test_metrics_without_an_api_beside_them_are_read(address):
    scraper = Scraper(http_address(f"{address}/ray"))
    scraper.scrape()
    assert (scraper.samples[-1].num_running, scraper.model, scraper.problem) == (3, None, "")


def test_unknown_metrics_are_reported(address):
    server = RemoteServer(ServerAddresses(None, None, http_address(f"{address}/other")))
    server._scraper.scrape()
    assert server.problems() == [
        f"{address}/other/metrics holds no metric that is known here: none begins with vllm:, sglang: or paged_kv:, "
        "with or without ray_ before it, or with _ for the colon."
    ]
