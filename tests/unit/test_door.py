"""Who is let in by name, and what the policy allows a page."""

from __future__ import annotations

from collections.abc import MutableMapping
from typing import Any

import pytest

from tests.helpers.asynchronous import run_to_end
from views.door import HOSTS_VARIABLE, METRICS_VARIABLE, Door, content_security_policy, is_known_host, own_names

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
def test_only_this_machine_is_answered_for(host: str, known: bool) -> None:
    assert is_known_host(host, {"laptop"}) is known


def test_names_can_be_added_before_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(HOSTS_VARIABLE, "Class.example, other.example")
    assert {"class.example", "other.example"} <= own_names()


def test_the_policy_names_no_other_machine() -> None:
    policy = content_security_policy("127.0.0.1:8501", ["sha256-abc="])
    assert "script-src 'self' blob: 'sha256-abc='" in policy
    assert "unsafe-eval" not in policy and "http" not in policy and "*" not in policy
    assert "connect-src 'self' ws://127.0.0.1:8501 wss://127.0.0.1:8501" in policy


def answers(scope: Message, monkeypatch: pytest.MonkeyPatch, metrics: bool = False) -> list[Message]:
    """What the door sends for a request to an application that says 200."""
    monkeypatch.setenv(METRICS_VARIABLE, "1" if metrics else "0")
    sent: list[Message] = []

    async def app(_scope: Message, _receive: object, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})

    async def send(message: Message) -> None:
        sent.append(message)

    async def receive() -> Message:
        return {"type": "http.request"}

    run_to_end(Door(app)(scope, receive, send))  # type: ignore[arg-type]
    return sent


def request(path: str, host: str, kind: str = "http") -> Message:
    return {"type": kind, "path": path, "method": "GET", "headers": [(b"host", host.encode())]}


def test_a_strange_host_is_told_how_to_be_let_in(monkeypatch: pytest.MonkeyPatch) -> None:
    start, body = answers(request("/", "evil.example"), monkeypatch)
    assert start["status"] == 400
    assert HOSTS_VARIABLE in body["body"].decode()


def test_a_socket_of_a_strange_host_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    [closed] = answers(request("/_stcore/stream", "evil.example", "websocket"), monkeypatch)
    assert (closed["type"], closed["code"]) == ("websocket.close", 1008)


def test_every_answer_carries_the_policy(monkeypatch: pytest.MonkeyPatch) -> None:
    [start] = answers(request("/", "127.0.0.1:1"), monkeypatch)
    names = dict(start["headers"])
    assert names[b"x-content-type-options"] == b"nosniff"
    assert b"'sha256-" in names[b"content-security-policy"], "Streamlit's own inline script is named"


def test_metrics_are_closed_unless_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    for path in ("/metrics", "/_stcore/metrics"):
        assert answers(request(path, "localhost"), monkeypatch)[0]["status"] == 404
        assert answers(request(path, "localhost"), monkeypatch, metrics=True)[0]["status"] == 200
