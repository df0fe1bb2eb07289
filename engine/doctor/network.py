"""The port, the browser and this machine's own address."""

from __future__ import annotations

import http.server
import shutil
import socket
import threading
import urllib.error
import urllib.request
import webbrowser
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from engine.doctor.finding import Finding

PORT = 8501
HERE = "127.0.0.1"
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "firefox", "microsoft-edge")


def check_port(port: int = PORT) -> Finding:
    """Whether the app's usual port is free on this machine."""
    try:
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((HERE, port))
    except OSError:
        fix = (
            f"Something listens there already: perhaps the app itself, at http://{HERE}:{port}. "
            f"Stop it, or start this one with `--server.port {port + 1}`."
        )
        return Finding("Port", f"Port {port} is taken.", fix)
    return Finding("Port", f"Port {port} is free.")


def check_own_address() -> Finding:
    """A page served on this machine is fetched the way a browser would, proxy settings included."""
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
    """`find`: gives the name of a browser, empty when there is none; by default this system is asked."""
    name = (find or _browser_here)()
    if name:
        return Finding("Browser", f"A browser is here ({name}).")
    fix = f"Install Chromium, Firefox or Chrome, or open http://{HERE}:{PORT} from a machine that has one."
    return Finding("Browser", "No browser was found on this machine.", fix)


def _browser_here() -> str:
    """The system's own choice, or one that is installed although this session has no screen."""
    try:
        browser = webbrowser.get()
    except webbrowser.Error:
        return next((name for name in BROWSERS if shutil.which(name)), "")
    return str(getattr(browser, "name", "")) or type(browser).__name__


class _Ready(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"ready")

    def log_message(self, *_args: object) -> None:
        """Nobody wants to read about it."""


@contextmanager
def _tiny_server() -> Iterator[int]:
    with http.server.HTTPServer((HERE, 0), _Ready) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield server.server_port
        server.shutdown()
