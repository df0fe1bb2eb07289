"""Which hosts are answered, and what the content security policy allows a page."""

from __future__ import annotations

from collections.abc import Callable, MutableMapping
from typing import Any

import pytest
import streamlit as st
from hypothesis import HealthCheck, given, settings, strategies

from tests.helpers.asynchronous import run_to_end
from views.server.proxies import ForwardedHostMiddleware
from views.server.security import (
    FRAMES_VARIABLE,
    HOSTS_VARIABLE,
    METRICS_VARIABLE,
    SecurityMiddleware,
    content_security_policy,
    frame_ancestors,
    is_known_host,
    own_names,
)
from views.server.streamlit_internals import inline_script_hashes

Message = MutableMapping[str, Any]


@pytest.mark.parametrize(
    ("host", "known"),
    [
        ("127.0.0.1:8501", True),
        ("localhost", True),
        ("LOCALHOST:8501", True),
        ("[::1]:8501", True),
        ("192.168.1.20:8501", True),
        ("laptop:8501", True),
        ("evil.example", False),
        ("127.0.0.1.evil.example", False),
        ("localhost.evil.example:8501", False),
        ("", False),
        ("a b", False),
        ("user@127.0.0.1", False),
        ("127.0.0.1/..", False),
        ("127.0.0.1:port", False),
        ("[::1", False),
        ("127.0.0.1; script-src *", False),
    ],
)
def test_only_hosts_of_this_machine_are_known(host: str, known: bool) -> None:
    assert is_known_host(host, {"laptop"}) is known


def test_names_can_be_added_before_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(HOSTS_VARIABLE, "Class.example, other.example")
    assert {"class.example", "other.example"} <= own_names()


def test_the_policy_names_no_other_machine() -> None:
    policy = content_security_policy("127.0.0.1:8501", ["sha256-abc="])
    assert "script-src 'self' blob: 'sha256-abc='" in policy
    assert "unsafe-eval" not in policy and "http" not in policy and "*" not in policy
    assert "connect-src 'self' ws://127.0.0.1:8501 wss://127.0.0.1:8501" in policy


@pytest.mark.parametrize(
    ("setting", "ancestors"),
    [
        ("", "'self'"),
        ("https://blog.example", "'self' https://blog.example"),
        ("HTTPS://blog.example:8443, http://10.0.0.1", "'self' https://blog.example:8443 http://10.0.0.1"),
    ],
)
def test_pages_are_framed_by_the_origins_of_a_setting_alone(
    setting: str, ancestors: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(FRAMES_VARIABLE, setting)
    [start] = answers(request("/", "localhost"), monkeypatch)
    [policy] = [value.decode() for name, value in start["headers"] if name == b"content-security-policy"]
    assert policy.split("; ")[-1] == f"frame-ancestors {ancestors}"


@pytest.mark.parametrize(
    "setting",
    ["*", "https://*", "blog.example", "https://blog.example/path", "https://a.example; script-src *", "null"],
)
def test_what_is_no_origin_opens_nothing(setting: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(FRAMES_VARIABLE, setting)
    with pytest.raises(ValueError, match="PAGED_KV_FRAME_ANCESTORS takes origins such as"):
        frame_ancestors()


HEADERS = strategies.sampled_from(
    ["host", "origin", "forwarded", "x-forwarded-host", "x-forwarded-for", "x-forwarded-proto", "x-forwarded-prefix"]
)
VALUES = strategies.one_of(
    strategies.sampled_from(
        ["127.0.0.1", "localhost", "evil.example", "https://evil.example", "https", "null", "*", "a, localhost", "[::1"]
    ),
    strategies.text(strategies.characters(max_codepoint=255, exclude_characters="\r\n\0"), max_size=20),
)


@given(strategies.lists(strategies.tuples(HEADERS, VALUES), max_size=6), strategies.sampled_from(["http", "websocket"]))
@settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_header_opens_what_is_closed_by_default(
    monkeypatch: pytest.MonkeyPatch, headers: list[tuple[str, str]], kind: str
) -> None:
    """Only a request whose own Host is known gets an answer, the same policy with that host in it, and nobody's
    word about another host, origin or proxy changes that."""
    sent_headers = [(name.encode(), value.encode("latin-1")) for name, value in headers]
    hosts = [value for name, value in headers if name == "host"]
    scope = {"type": kind, "path": "/", "method": "GET", "client": ("127.0.0.1", 1), "headers": sent_headers}
    start = answers(scope, monkeypatch, wrap=ForwardedHostMiddleware)[0]
    if hosts and is_known_host(hosts[0], own_names()):
        policy = dict(start["headers"])[b"content-security-policy"].decode("latin-1")
        assert policy == content_security_policy(hosts[0], inline_script_hashes())
        assert "evil" not in policy and "*" not in policy
    else:
        assert start.get("status") == 400 or (start["type"], start["code"]) == ("websocket.close", 1008)


def answers(
    scope: Message,
    monkeypatch: pytest.MonkeyPatch,
    metrics: bool = False,
    status: int = 200,
    wrap: Callable[[Any], Any] = lambda app: app,
) -> list[Message]:
    """What the middleware, inside `wrap`, sends for a request to an application that answers with `status`."""
    monkeypatch.setenv(METRICS_VARIABLE, "1" if metrics else "0")
    sent: list[Message] = []

    async def app(_scope: Message, _receive: object, send: Any) -> None:
        await send({"type": "http.response.start", "status": status, "headers": []})

    async def send(message: Message) -> None:
        sent.append(message)

    async def receive() -> Message:
        return {"type": "http.request"}

    run_to_end(wrap(SecurityMiddleware(app))(scope, receive, send))  # type: ignore[arg-type]
    return sent


def request(path: str, host: str, kind: str = "http") -> Message:
    return {"type": kind, "path": path, "method": "GET", "headers": [(b"host", host.encode())]}


def test_an_unknown_host_is_refused_with_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    start, body = answers(request("/", "evil.example"), monkeypatch)
    assert start["status"] == 400
    assert HOSTS_VARIABLE in body["body"].decode()


def test_a_websocket_of_an_unknown_host_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    [closed] = answers(request("/_stcore/stream", "evil.example", "websocket"), monkeypatch)
    assert (closed["type"], closed["code"]) == ("websocket.close", 1008)


def test_every_response_carries_the_policy(monkeypatch: pytest.MonkeyPatch) -> None:
    [start] = answers(request("/", "127.0.0.1:1"), monkeypatch)
    names = dict(start["headers"])
    assert names[b"x-content-type-options"] == b"nosniff"
    assert b"'sha256-" in names[b"content-security-policy"], "Streamlit's own inline script is named"


def test_metrics_are_refused_unless_turned_on(monkeypatch: pytest.MonkeyPatch) -> None:
    for path in ("/metrics", "/_stcore/metrics"):
        assert answers(request(path, "localhost"), monkeypatch)[0]["status"] == 404
        assert answers(request(path, "localhost"), monkeypatch, metrics=True)[0]["status"] == 200


def test_metrics_are_refused_below_a_base_path_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(st, "get_option", {"server.baseUrlPath": "kv"}.__getitem__)
    for path in ("/kv/metrics", "/kv/_stcore/metrics"):
        assert answers(request(path, "localhost"), monkeypatch)[0]["status"] == 404
        assert answers(request(path, "localhost"), monkeypatch, metrics=True)[0]["status"] == 200


@pytest.mark.parametrize(
    ("path", "inside", "outside"),
    [
        ("/live_engine/_stcore/health", 404, 300),
        ("/live_engine/_stcore/host-config", 404, 300),
        ("/_stcore/health", 200, 200),
        ("/_stcore/health", 503, 503),
        ("/no_such_file.js", 404, 404),
    ],
)
def test_a_health_check_below_a_page_path_is_no_error(
    path: str, inside: int, outside: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Streamlit's client does so at every deep link, and a browser writes each answer from 400 on into its console."""
    [start] = answers(request(path, "localhost"), monkeypatch, status=inside)
    assert start["status"] == outside
