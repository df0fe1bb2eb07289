"""What a browser tab complains about while a test drives it."""

from __future__ import annotations

from urllib.parse import urlparse

from playwright.sync_api import ConsoleMessage, Page, Request

LOCAL_SCHEMES = ("data", "blob")


class PageWatch:
    """Listens to one tab from its first request on. `own_host`: the one machine that it may ask."""

    def __init__(self, page: Page, own_host: str = "127.0.0.1") -> None:
        self.own_host = own_host
        self.complaints: list[str] = []
        page.on("console", self._on_console)
        page.on("pageerror", lambda error: self.complaints.append(f"uncaught: {error}"))
        page.on("request", self._on_request)

    def check(self) -> None:
        assert not self.complaints, "\n".join(self.complaints)

    def _on_console(self, message: ConsoleMessage) -> None:
        if message.type == "error":
            self.complaints.append(f"console: {message.text} ({message.location.get('url')})")

    def _on_request(self, request: Request) -> None:
        address = urlparse(request.url)
        if address.scheme not in LOCAL_SCHEMES and address.hostname != self.own_host:
            self.complaints.append(f"left this machine: {request.url}")
