"""Addresses typed by a user, checked before anything connects to them.

Allowed: `tcp://host:port` for events, `http://host:port` and `https://host:port` for the API, with no user name,
query or fragment. Link-local addresses (where clouds keep their machines' secrets) are never asked.
Raises AddressError with one plain sentence.
"""

from __future__ import annotations

import ipaddress
import socket
from dataclasses import dataclass
from typing import Literal
from urllib.parse import SplitResult, urlsplit

from engine.i18n import _

LONGEST_ADDRESS = 200
SECONDS_TO_ANSWER = 1.5
Scheme = Literal["tcp", "http", "https"]
_DEFAULT_PORTS = {"http": 80, "https": 443}


class AddressError(ValueError):
    """An address that cannot be used. The message says why and what to type."""


@dataclass(frozen=True, slots=True)
class Address:
    """`path` has no slash at its end; endpoints have none at all."""

    scheme: str
    host: str
    port: int
    path: str = ""

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{self.port}{self.path}"

    @property
    def is_this_machine(self) -> bool:
        """Whether it names the machine the app runs on."""
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False

    def of_rank(self, rank: int) -> Address:
        """Where a data-parallel rank publishes: each has the port after the one before."""
        return Address(self.scheme, self.host, self.port + rank, self.path)


def events_address(text: str) -> Address:
    """`tcp://host:port`."""
    return _address(text, ("tcp",), "tcp://127.0.0.1:5557")


def http_address(text: str) -> Address:
    """`http://host:port` or `https://host:port`; a `/v1` at the end is dropped."""
    address = _address(text, ("http", "https"), "http://127.0.0.1:8000")
    return Address(address.scheme, address.host, address.port, address.path.removesuffix("/v1"))


def is_listening(address: Address) -> bool:
    """Whether anything takes a connection there."""
    try:
        with socket.create_connection((address.host, address.port), SECONDS_TO_ANSWER):
            return True
    except OSError:
        return False


def _address(text: str, schemes: tuple[Scheme, ...], example: str) -> Address:
    text = text.strip()
    shown = repr(text[:60])
    if len(text) > LONGEST_ADDRESS:
        raise AddressError(
            _("The address has {num_text} characters; the limit is {longest_address}. Shorten it.").format(
                num_text=len(text), longest_address=LONGEST_ADDRESS
            )
        )
    try:
        parts = urlsplit(text)
        port = parts.port or _DEFAULT_PORTS.get(parts.scheme)
    except ValueError:
        raise AddressError(
            _("{shown} is not an address. Type one like {example}.").format(shown=shown, example=example)
        ) from None
    if parts.scheme not in schemes:
        wanted = " or ".join(f"{scheme}://" for scheme in schemes)
        raise AddressError(
            _("{shown} does not begin with {wanted}. Example: {example}.").format(
                shown=shown, wanted=wanted, example=example
            )
        )
    if not parts.hostname or port is None or not _is_bare(parts):
        raise AddressError(
            _("{shown} needs a host and a port and nothing else. Example: {example}.").format(
                shown=shown, example=example
            )
        )
    if parts.scheme == "tcp" and parts.path not in ("", "/"):
        raise AddressError(
            _("{shown} needs a host and a port and nothing else. Example: {example}.").format(
                shown=shown, example=example
            )
        )
    _refuse_link_local(parts.hostname)
    return Address(parts.scheme, parts.hostname, port, parts.path.rstrip("/"))


def _is_bare(parts: SplitResult) -> bool:
    plain = all(c.isprintable() and not c.isspace() for c in parts.netloc + parts.path)
    return plain and not (parts.username or parts.password or parts.query or parts.fragment) and "*" not in parts.netloc


def _refuse_link_local(host: str) -> None:
    try:
        is_link_local = ipaddress.ip_address(host).is_link_local
    except ValueError:
        return
    if is_link_local:
        raise AddressError(
            _("{host} is a link-local address, which this app never contacts. Use the server's own address.").format(
                host=host
            )
        )
