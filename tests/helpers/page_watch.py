"""What a browser tab complains about while a test drives it."""

from __future__ import annotations

from urllib.parse import urlparse

from playwright.sync_api import ConsoleMessage, Page, Request

LOCAL_SCHEMES = ("data", "blob")
PROBES_OF_A_DEEP_LINK = ("/_stcore/health", "/_stcore/host-config")
"""On an address such as `/live_engine`, Streamlit's client first looks for its server below that path: two 404s."""


class PageWatch:
    """Listens to one tab from its first request on."""

    def __init__(self, page: Page) -> None:
        self.complaints: list[str] = []
        page.on("console", self._on_console)
        page.on("pageerror", lambda error: self.complaints.append(f"uncaught: {error}"))
        page.on("request", self._on_request)

    def check(self) -> None:
        assert not self.complaints, "\n".join(self.complaints)

    def _on_console(self, message: ConsoleMessage) -> None:
        if message.type == "error" and not self._is_probe(message):
            self.complaints.append(f"console: {message.text} ({message.location.get('url')})")

    def _on_request(self, request: Request) -> None:
        address = urlparse(request.url)
        if address.scheme not in LOCAL_SCHEMES and address.hostname != "127.0.0.1":
            self.complaints.append(f"left this machine: {request.url}")

    @staticmethod
    def _is_probe(message: ConsoleMessage) -> bool:
        address = urlparse(message.location.get("url", ""))
        below_a_page = not address.path.startswith("/_stcore")
        return "404" in message.text and below_a_page and address.path.endswith(PROBES_OF_A_DEEP_LINK)
