"""Who can reach this server, and at which address: what the page tells the presenter before the room comes."""

from __future__ import annotations

import ipaddress
import socket
from dataclasses import dataclass
from functools import lru_cache
from urllib.parse import urlencode, urlsplit

import segno
import streamlit as st

from course.pages import COURSE
from engine.i18n import N_, _

PAGES = {page.url_path for page in COURSE}
ONLY_HERE = N_(
    "Only this machine can open this room: the server listens to 127.0.0.1. "
    "To let others in, start it with: streamlit run app.py --server.address 0.0.0.0"
)
REACHED = N_(
    "This server is reached through {host}: everybody who can open that address can open every page, "
    "run the model and start a room."
)
EXPOSED = N_(
    "The server listens to the whole network: everybody who can reach this machine can open every page, "
    "run the model and start a room. Nothing is encrypted. Use it on a network you trust, and stop it afterwards."
)


@dataclass(frozen=True)
class NetworkExposure:
    """`base`: the address of the app that attendees open, without a slash at its end. `sentence`: what is exposed, or
    what to do."""

    base: str
    is_open: bool
    sentence: str

    def link(self, code: str) -> str:
        """The address that joins the room of this code."""
        return f"{self.base}/room?{urlencode({'room': code})}"


def exposure_of_this_server() -> NetworkExposure:
    """As the tab that is drawn sees it."""
    return network_exposure(st.get_option("server.address"), st.context.url or "", own_address())


@lru_cache(maxsize=16)
def qr_code(link: str) -> str:
    """An SVG image as a data: address, drawn here: dark on white with its margin, as cameras want it."""
    return segno.make(link, error="m", micro=False).svg_data_uri(scale=4, border=4, dark="#000", light="#fff")


def network_exposure(bound_to: str | None, page_url: str, own_address: str | None) -> NetworkExposure:
    """bound_to: the server's --server.address. page_url: what the presenter's browser shows, so that scheme, host and
    path are right behind any proxy. own_address: this machine's on its network, if it has one."""
    parts = urlsplit(page_url)
    host, port = parts.hostname or "localhost", f":{parts.port}" if parts.port else ""
    path = _path_of_app(parts.path)
    shown = f"{parts.scheme}://{parts.netloc}{path}"
    is_bound_here = bool(bound_to) and _is_loopback(str(bound_to))
    if is_bound_here and _is_loopback(host):
        return NetworkExposure(shown, False, _(ONLY_HERE))
    if is_bound_here or parts.scheme == "https":
        return NetworkExposure(shown, True, _(REACHED).format(host=parts.netloc))
    if _is_loopback(host) and own_address:
        host = own_address
    return NetworkExposure(f"{parts.scheme}://{host}{port}{path}", True, _(EXPOSED))


def _path_of_app(path: str) -> str:
    """Without the page: `/kv` of `/kv/room`, of `/kv/` and of `/kv`; empty at the root."""
    folder, _slash, last = path.rstrip("/").rpartition("/")
    return folder if last in PAGES else path.rstrip("/")


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
