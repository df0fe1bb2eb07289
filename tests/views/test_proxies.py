"""What is believed of a proxy's headers: nothing by default, the host of a proxy that a setting names."""

from __future__ import annotations

from collections.abc import MutableMapping
from typing import Any

import pytest
import uvicorn
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from tests.helpers.asynchronous import run_to_end
from views.remote.connections import is_presenter
from views.server.proxies import (
    PROXIES_VARIABLE,
    UNKNOWN_VISITOR,
    ForwardedHostMiddleware,
    comes_through_a_proxy,
    keep_uvicorn_from_reading_forwarded_headers,
    trusted_proxies,
)

Scope = MutableMapping[str, Any]
FORWARDED = [
    (b"host", b"127.0.0.1:8501"),
    (b"x-forwarded-host", b"first.example, kv.example"),
    (b"x-forwarded-for", b"192.0.2.9"),
    (b"x-forwarded-proto", b"https"),
]


def seen_by_app(wrap: Any, peer: str) -> Scope:
    """The scope that reaches an app inside `wrap(app)`, for a connection from `peer` with the headers above."""
    seen: list[Scope] = []

    async def app(scope: Scope, _receive: object, _send: object) -> None:
        seen.append(scope)

    async def nothing() -> None: ...

    scope = {"type": "http", "scheme": "http", "path": "/", "client": (peer, 5), "headers": list(FORWARDED)}
    run_to_end(wrap(app)(scope, nothing, nothing))
    return seen[0]


@pytest.mark.parametrize(
    ("setting", "peer", "host"),
    [
        ("", "127.0.0.1", b"127.0.0.1:8501"),
        ("127.0.0.1", "127.0.0.1", b"kv.example"),
        ("10.0.0.0/8, ::1", "10.1.2.3", b"kv.example"),
        ("10.0.0.0/8, ::1", "127.0.0.1", b"127.0.0.1:8501"),
        ("127.0.0.1", "a name", b"127.0.0.1:8501"),
    ],
)
def test_the_host_of_a_proxy_counts_only_where_the_setting_names_it(
    setting: str, peer: str, host: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(PROXIES_VARIABLE, setting)
    scope = seen_by_app(ForwardedHostMiddleware, peer)
    assert [value for name, value in scope["headers"] if name == b"host"] == [host]
    assert (scope["client"], scope["scheme"]) == ((peer, 5), "http")


def test_a_setting_that_is_no_address_is_refused_with_what_it_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(PROXIES_VARIABLE, "proxy.example")
    with pytest.raises(ValueError, match=r"PAGED_KV_TRUSTED_PROXIES takes IP addresses .* 'proxy\.example'"):
        trusted_proxies()


def test_uvicorn_alone_believes_every_program_on_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Why its default is turned off. When this fails, it no longer does, and the function below can go."""
    monkeypatch.setattr(ProxyHeadersMiddleware, "__call__", ProxyHeadersMiddleware.__call__)
    before = seen_by_app(in_uvicorn, "127.0.0.1")
    assert (before["client"][0], before["scheme"]) == ("192.0.2.9", "https")
    keep_uvicorn_from_reading_forwarded_headers()
    after = seen_by_app(in_uvicorn, "127.0.0.1")
    assert (after["client"], after["scheme"]) == (("127.0.0.1", 5), "http")


def in_uvicorn(app: Any) -> Any:
    config = uvicorn.Config(app, log_config=None)
    config.load()
    return config.loaded_app


@pytest.mark.parametrize(
    ("headers", "through"),
    [
        ({}, False),
        ({"Host": "127.0.0.1:8501", "Origin": "http://127.0.0.1:8501"}, False),
        ({"Host": "localhost", "Origin": "http://localhost"}, False),
        ({"Host": "[::1]:8501"}, False),
        ({"Host": "127.0.0.1:8501", "X-Forwarded-For": "127.0.0.1"}, True),
        ({"Host": "127.0.0.1:8501", "forwarded": "for=127.0.0.1"}, True),
        ({"Host": "127.0.0.1:8501", "Origin": "https://kv.example"}, True),
        ({"Host": "kv.example"}, True),
        ({"Host": ""}, True),
        ({"Host": "[::1"}, True),
    ],
)
def test_a_visitor_who_comes_through_a_proxy_is_known_by_the_headers(headers: dict[str, str], through: bool) -> None:
    assert comes_through_a_proxy(headers) is through


def test_a_visitor_behind_a_proxy_is_not_the_presenter() -> None:
    assert is_presenter(None) and not is_presenter(UNKNOWN_VISITOR)
