"""Firefox and WebKitGTK as Debian ships them: Playwright drives only builds of its own.

    with firefox(folder) as browser:
        browser.go("http://127.0.0.1:8501/")
        browser.click("button")

Both speak W3C WebDriver's commands; Marionette by their names over a socket, WebKitWebDriver by their paths over HTTP.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import socket
import subprocess
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol

from tests.helpers.app_server import free_port, listens, stop
from tests.helpers.waiting import until

SECONDS_FOR_A_COMMAND = 60.0
ELEMENT = "element-6066-11e4-a52e-4f735466cecf"
"""W3C's name for an element in an answer."""
MINI_BROWSERS = "/usr/lib/*/webkit2gtk-4.*/MiniBrowser"
FIREFOX_NAMES = ("firefox-esr", "firefox")
PREFERENCES = {
    "marionette.port": 0,
    "ui.prefersReducedMotion": 1,
    "app.update.disabledForTesting": True,
    "browser.shell.checkDefaultBrowser": False,
    "datareporting.policy.dataSubmissionEnabled": False,
    "toolkit.telemetry.enabled": False,
}
# Walks into the shadow roots of the page's components, which a selector alone does not.
FIND_ALL = """
const found = [];
const look = (root) => {
  found.push(...root.querySelectorAll(arguments[0]));
  for (const one of root.querySelectorAll("*")) if (one.shadowRoot) look(one.shadowRoot);
};
look(document);
"""


class Remote(Protocol):
    """How a command and its answer travel."""

    def ask(self, name: str, method: str, path: str, body: dict[str, Any]) -> Any: ...


class OtherBrowser:
    """One window."""

    def __init__(self, remote: Remote) -> None:
        self._remote = remote

    def go(self, url: str) -> None:
        self._remote.ask("WebDriver:Navigate", "POST", "/url", {"url": url})

    def click(self, selector: str) -> None:
        """The first element outside of components that the selector finds."""
        query = {"using": "css selector", "value": selector}
        found = self._remote.ask("WebDriver:FindElement", "POST", "/element", query)[ELEMENT]
        self._remote.ask("WebDriver:ElementClick", "POST", f"/element/{found}/click", {"id": found})

    def texts(self, selector: str) -> list[str]:
        """The text of each element that has a size on the page, also inside of components."""
        script = FIND_ALL + (
            "return found.filter((one) => one.getBoundingClientRect().width > 0).map((one) => one.textContent.trim());"
        )
        body = {"script": script, "args": [selector]}
        texts: list[str] = self._remote.ask("WebDriver:ExecuteScript", "POST", "/execute/sync", body)
        return texts


class Marionette:
    """Firefox's own protocol: `length:[0, id, name, parameters]`, answered by `length:[1, id, error, result]`."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), SECONDS_FOR_A_COMMAND)
        self._stream = self._socket.makefile("rb")
        self._read()  # it says who it is

    def ask(self, name: str, method: str, path: str, body: dict[str, Any]) -> Any:
        message = json.dumps([0, 1, name, body]).encode()
        self._socket.sendall(b"%d:%s" % (len(message), message))
        _, _, error, result = self._read()
        assert error is None, error
        return result.get("value", result) if isinstance(result, dict) else result

    def close(self) -> None:
        self._stream.close()
        self._socket.close()

    def _read(self) -> Any:
        length = b""
        while (digit := self._stream.read(1)) != b":":
            assert digit, "Firefox has closed the connection"
            length += digit
        return json.loads(self._stream.read(int(length)))


class WebDriver:
    """A session of a WebDriver server."""

    def __init__(self, port: int, capabilities: dict[str, Any]) -> None:
        self._base = f"http://127.0.0.1:{port}/session"
        answer = self._post("", {"capabilities": {"alwaysMatch": capabilities}}, "POST")
        self._base += f"/{answer['sessionId']}"

    def ask(self, name: str, method: str, path: str, body: dict[str, Any]) -> Any:
        return self._post(path, body, method)

    def close(self) -> None:
        self._post("", {}, "DELETE")

    def _post(self, path: str, body: dict[str, Any], method: str) -> Any:
        request = urllib.request.Request(
            self._base + path, json.dumps(body).encode(), {"Content-Type": "application/json"}, method=method
        )
        with urllib.request.urlopen(request, timeout=SECONDS_FOR_A_COMMAND) as answer:
            return json.load(answer)["value"]


def why_no_firefox() -> str:
    """Why it cannot be had here; "" when it can."""
    return "" if _firefox() else "No Firefox on this machine (Debian: firefox-esr)."


def why_no_webkit() -> str:
    """Why it cannot be had here; "" when it can."""
    has_all = _mini_browser() and shutil.which("WebKitWebDriver") and shutil.which("Xvfb")
    return "" if has_all else "No WebKitGTK on this machine (Debian: webkit2gtk-driver, xvfb)."


@contextlib.contextmanager
def firefox(folder: Path) -> Iterator[OtherBrowser]:
    """A window of its own profile, in `folder`."""
    command = _firefox()
    assert command is not None
    lines = [f'user_pref("{name}", {json.dumps(value)});' for name, value in PREFERENCES.items()]
    (folder / "user.js").write_text("\n".join(lines))
    with _running([command, "--marionette", "--headless", "--no-remote", "--profile", str(folder)], folder):
        told = folder / "MarionetteActivePort"
        until(lambda: told.exists() and told.read_text().strip() != "", what="Firefox's port")
        with contextlib.closing(Marionette(int(told.read_text()))) as remote:
            remote.ask("WebDriver:NewSession", "", "", {"capabilities": {"alwaysMatch": {}}})
            yield OtherBrowser(remote)


@contextlib.contextmanager
def webkit(folder: Path) -> Iterator[OtherBrowser]:
    """A window on a display of its own; what the browser keeps is in `folder`."""
    port, reader, writer = free_port(), *os.pipe()
    options = {"binary": str(_mini_browser()), "args": ["--automation"]}
    with _running(["Xvfb", "-displayfd", str(writer), "-screen", "0", "1280x900x24"], folder, pass_fds=(writer,)):
        os.close(writer)
        with os.fdopen(reader) as told:
            display = f":{told.readline().strip()}"
        environment = {"DISPLAY": display, "HOME": str(folder), "GDK_BACKEND": "x11", "NO_AT_BRIDGE": "1"}
        with _running(["WebKitWebDriver", f"--port={port}"], folder, environment):
            until(lambda: listens(port), what="WebKitWebDriver's port")
            with contextlib.closing(WebDriver(port, {"webkitgtk:browserOptions": options})) as remote:
                yield OtherBrowser(remote)


def _firefox() -> str | None:
    return next(filter(None, map(shutil.which, FIREFOX_NAMES)), None)


def _mini_browser() -> Path | None:
    return next(iter(sorted(Path("/").glob(MINI_BROWSERS.lstrip("/")), reverse=True)), None)


@contextlib.contextmanager
def _running(
    command: list[str], folder: Path, environment: dict[str, str] | None = None, pass_fds: tuple[int, ...] = ()
) -> Iterator[None]:
    with (folder / f"{Path(command[0]).name}.log").open("wb") as log:
        process = subprocess.Popen(
            command, env={**os.environ, **(environment or {})}, stdout=log, stderr=subprocess.STDOUT, pass_fds=pass_fds
        )
    try:
        yield
    finally:
        stop(process)
