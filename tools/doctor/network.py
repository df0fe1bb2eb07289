"""Checks of the port, of this machine's own address, and of a browser."""

from __future__ import annotations

import http.server
import shutil
import socket
import subprocess
import sys
import threading
import urllib.error
import urllib.request
import webbrowser
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from course.finding import Finding

PORT = 8501
HERE = "127.0.0.1"
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "firefox", "microsoft-edge")
TEXT_BROWSERS = ("www-browser", "links", "elinks", "lynx", "w3m")
OPENERS = ("xdg-open", "gvfs-open")


def check_port(port: int = PORT) -> Finding:
    """Whether the app's port is free on this machine."""
    if not 0 < port < 65536:
        return Finding("Port", f"{port} is no port.", "Choose one from 1024 to 65535.")
    try:
        is_taken = _is_listening(port)
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((HERE, port))
    except PermissionError:
        return Finding("Port", f"Port {port} is not for this user.", "Choose one from 1024 to 65535.")
    except OSError:
        is_taken = True
    if is_taken:
        fix = (
            f"Something listens there already: perhaps the app itself, at http://{HERE}:{port}. "
            f"Stop it, or start this one with `--server.port {port + 1}`."
        )
        return Finding("Port", f"Port {port} is taken.", fix)
    return Finding("Port", f"Port {port} is free.")


def _is_listening(port: int) -> bool:
    """Outside Linux, an address with a listener can be bound again with SO_REUSEADDR: binding alone proves nothing."""
    with socket.socket() as caller:
        caller.settimeout(1.0)
        return caller.connect_ex((HERE, port)) == 0


def check_own_address() -> Finding:
    """Fetch a page that is served on this machine as a browser would, with the proxy settings."""
    with _tiny_server() as port:
        address = f"http://{HERE}:{port}/"
        try:
            with urllib.request.build_opener().open(address, timeout=3) as answer:
                if answer.read() == b"ready":
                    return Finding("Own address", f"A page on {HERE} can be fetched.")
        except (OSError, urllib.error.URLError) as error:
            why = str(error)
        else:
            why = "something else answered"
    fix = f"A proxy or firewall stands between: add {HERE} to NO_PROXY, or allow connections to it."
    return Finding("Own address", f"A page on {HERE} cannot be fetched ({why}).", fix)


def check_browser(find: Callable[[], str] | None = None) -> Finding:
    """`find` returns the name of a browser, empty when there is none; by default this system is searched."""
    name = (find or _installed_browser)()
    if name:
        return Finding("Browser", f"A browser is here ({name}).")
    fix = f"Install Chromium, Firefox or Chrome, or open http://{HERE}:{PORT} from a machine that has one."
    return Finding("Browser", "No browser was found on this machine.", fix)


def _installed_browser() -> str:
    """The name of an installed browser, else of the system's default; empty when there is none.

    Except on macOS and Windows, the default may name a program that is missing, one that shows text only, or
    `xdg-open`, which opens whatever is configured.
    """
    if there := next((name for name in BROWSERS if shutil.which(name)), ""):
        return there
    try:
        browser = webbrowser.get()
    except webbrowser.Error:
        return ""
    name = str(getattr(browser, "name", "")) or type(browser).__name__
    if sys.platform in ("darwin", "win32"):
        return name
    if name in OPENERS:
        return _desktop_default()
    return name if shutil.which(name) and name not in TEXT_BROWSERS else ""


def _desktop_default() -> str:
    try:
        asked = ["xdg-settings", "get", "default-web-browser"]
        return subprocess.run(asked, capture_output=True, text=True, timeout=3, check=False).stdout.strip()
    except (OSError, subprocess.TimeoutExpired):
        return ""


class _Ready(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"ready")

    def log_message(self, *_args: object) -> None:
        """Keep the request out of the output."""


@contextmanager
def _tiny_server() -> Iterator[int]:
    with http.server.HTTPServer((HERE, 0), _Ready) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield server.server_port
        server.shutdown()
