"""Who may point this app at which server: it must not become a way into a network for everybody in a room.

- Only `tcp://`, `http://` and `https://` addresses of servers, never link-local ones (`engine/remote/addresses.py`).
  Only fixed paths are asked for, redirects are not followed, answers are shown as figures and text, never passed on.
- Whoever sits at the machine that runs the app (the presenter) may type any of them.
- Everybody else may use servers on that machine, and those that the presenter has attached to.
- With the environment variable PAGED_KV_SERVERS, a comma-separated list of addresses, nobody may use any other server
  than these and this machine's own. Set it when a proxy on this machine makes every visitor look local.
"""

from __future__ import annotations

import ipaddress
import os

from engine.remote.addresses import Address
from engine.remote.server import ServerAddresses

SERVERS_VARIABLE = "PAGED_KV_SERVERS"


def is_presenter(visitor: str | None) -> bool:
    """Whether a visitor with this IP address sits at the app's own machine; Streamlit gives None for it."""
    if visitor is None:
        return True
    try:
        return ipaddress.ip_address(visitor).is_loopback
    except ValueError:
        return False


def refusal(addresses: ServerAddresses, visitor: str | None, attached: set[Address]) -> str:
    """Why this visitor may not use these addresses, in one sentence; nothing when they may.

    `attached`: what the presenter has attached to.
    """
    foreign = [part for part in asked_addresses(addresses) if not part.is_this_machine]
    named = os.environ.get(SERVERS_VARIABLE)
    if named is not None:
        listed = {text.strip().rstrip("/") for text in named.split(",")}
        foreign = [part for part in foreign if str(part) not in listed]
        return f"{foreign[0]} is not one of the servers that this app may use." if foreign else ""
    if is_presenter(visitor):
        return ""
    foreign = [part for part in foreign if part not in attached]
    return f"Only the presenter can attach to {foreign[0]}: ask them to do it first." if foreign else ""


def asked_addresses(addresses: ServerAddresses) -> list[Address]:
    """Every address that would be connected to."""
    parts = [addresses.events, addresses.replay, addresses.api]
    ranks = range(addresses.num_ranks)
    return [part.of_rank(rank) for part in parts[:2] if part is not None for rank in ranks] + [
        part for part in parts[2:] if part is not None
    ]
