"""Small HTTP requests to one server: time and size are bounded, redirects are not followed."""

from __future__ import annotations

import http.client
import json
import time
from typing import Any

from engine.i18n import _
from engine.remote.addresses import Address

SECONDS_TO_ANSWER = 2.0
MAX_BYTES = 4 << 20


class HttpError(ValueError):
    """No usable answer. The message is one plain sentence; `status` is the server's, when it answered at all."""

    def __init__(self, sentence: str, status: int | None = None) -> None:
        super().__init__(sentence)
        self.status = status


def get(base: Address, path: str, *, seconds: float = SECONDS_TO_ANSWER) -> str:
    """The body of `base + path` as text. Raises HttpError."""
    return _request("GET", base, path, None, {}, seconds)


def get_json(base: Address, path: str, *, seconds: float = SECONDS_TO_ANSWER) -> Any:
    """The body of `base + path` as JSON. Raises HttpError."""
    return _parsed(base, get(base, path, seconds=seconds))


def post_json(base: Address, path: str, body: Any, *, seconds: float, api_key: str = "") -> Any:
    """The JSON that the server answers. Raises HttpError."""
    headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {api_key}"} if api_key else {})
    return _parsed(base, _request("POST", base, path, json.dumps(body).encode(), headers, seconds))


def _request(method: str, base: Address, path: str, body: bytes | None, headers: dict[str, str], seconds: float) -> str:
    kind = http.client.HTTPSConnection if base.scheme == "https" else http.client.HTTPConnection
    connection = kind(base.host, base.port, timeout=seconds)
    try:
        connection.request(method, base.path + path, body, headers)
        answer = connection.getresponse()
        text = _read(answer, time.monotonic() + seconds)
    except ConnectionRefusedError:
        raise HttpError(_("Nothing listens at {base}.").format(base=base)) from None
    except TimeoutError:
        raise HttpError(
            _("{base} did not answer within {seconds:g} seconds.").format(base=base, seconds=seconds)
        ) from None
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise HttpError(_("{base} cannot be reached: {error}").format(base=base, error=error)) from None
    finally:
        connection.close()
    if answer.status != 200:
        raise HttpError(_complaint(base, path, answer.status, text), answer.status)
    if len(text) > MAX_BYTES:
        raise HttpError(
            _("{base}{path} answered with more than {max_bytes} MB.").format(
                base=base, path=path, max_bytes=MAX_BYTES >> 20
            )
        )
    return text.decode("utf-8", "replace")


def _read(answer: http.client.HTTPResponse, deadline: float) -> bytes:
    """The body, or a little more than may be of it. Raises TimeoutError when it drips in too slowly."""
    parts: list[bytes] = []
    size = 0
    while size <= MAX_BYTES and (part := answer.read1(1 << 16)):
        parts.append(part)
        size += len(part)
        if time.monotonic() > deadline:
            raise TimeoutError
    return b"".join(parts)


def _complaint(base: Address, path: str, status: int, text: bytes) -> str:
    """The server's own sentence, when it is in the standard shape."""
    try:
        message = json.loads(text)["error"]["message"]
    except (ValueError, KeyError, TypeError, RecursionError):
        message = None
    detail = f": {message[:300]}" if isinstance(message, str) else "."
    return f"{base}{path} answered with status {status}{detail}"


def _parsed(base: Address, text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise HttpError(_("{base} answered with something that is not JSON.").format(base=base)) from None
