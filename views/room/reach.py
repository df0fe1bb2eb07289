"""Who can reach this server, and at which address: what the page tells the presenter before the room comes."""

from __future__ import annotations

import ipaddress
import socket
from dataclasses import dataclass
from urllib.parse import urlencode, urlsplit

ONLY_HERE = (
    "Only this machine can open this room: the server listens to 127.0.0.1. "
    "To let others in, start it with: streamlit run app.py --server.address 0.0.0.0"
)
EXPOSED = (
    "The server listens to the whole network: everybody who can reach this machine can open every page, "
    "run the model and start a room. Nothing is encrypted. Use it on a network you trust, and stop it afterwards."
)


@dataclass(frozen=True)
class Reach:
    """`base`: scheme, host and port that attendees open. `sentence`: what is exposed, or what to do."""

    base: str
    is_open: bool
    sentence: str

    def link(self, code: str) -> str:
        return f"{self.base}/room?{urlencode({'room': code})}"


def reach_of(bound_to: str | None, page_url: str, own_address: str | None) -> Reach:
    """bound_to: the server's --server.address. page_url: what the presenter's browser shows. own_address: this
    machine's on its network, if it has one."""
    parts = urlsplit(page_url)
    host, port = parts.hostname or "localhost", f":{parts.port}" if parts.port else ""
    if bound_to and _is_loopback(bound_to):
        return Reach(f"{parts.scheme}://{parts.netloc}", False, ONLY_HERE)
    if _is_loopback(host) and own_address:
        host = own_address
    return Reach(f"{parts.scheme}://{host}{port}", True, EXPOSED)


def own_address() -> str | None:
    """This machine's address on its network. Nothing is sent: a datagram socket only looks up the way."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # an address of documentation (RFC 5737)
        except OSError:
            return None
        address: str = probe.getsockname()[0]
    return address


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
