"""Start a Streamlit script on a free port of this machine, and stop it again."""

from __future__ import annotations

import contextlib
import os
import secrets
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.helpers.waiting import until

ROOT = Path(__file__).resolve().parents[2]
SECONDS_TO_START = 180.0
SECONDS_TO_STOP = 15.0
PORTS = range(20_000, 32_000)
"""Below those that systems hand out by themselves (Linux: from 32768 on)."""


@dataclass(frozen=True)
class AppServer:
    url: str
    process: subprocess.Popen[bytes]
    log_file: Path

    @property
    def log(self) -> str:
        """What the server has written to its two outputs so far."""
        return self.log_file.read_text("utf-8", "replace")


@contextlib.contextmanager
def running_app(
    script: Path,
    log_file: Path,
    environment: Mapping[str, str] | None = None,
    port: int | None = None,
    base_path: str = "",
) -> Iterator[AppServer]:
    """The server of `script`, answering, at any free port. Fails with the server's log when it does not come up.

    base_path: `/kv`, where it is served below a path.
    """
    port = port or free_port()
    command = [sys.executable, "-m", "streamlit", "run", str(script), "--server.port", str(port)]
    command += ["--server.address", "127.0.0.1", "--server.headless", "true"]
    command += ["--server.baseUrlPath", base_path.strip("/")] if base_path else []
    with log_file.open("wb") as log:
        process = subprocess.Popen(
            command, cwd=ROOT, env={**os.environ, **(environment or {})}, stdout=log, stderr=subprocess.STDOUT
        )
    server = AppServer(f"http://127.0.0.1:{port}{base_path}", process, log_file)
    try:
        _wait_until_it_answers(server)
        yield server
    finally:
        stop(process)


def stop(process: subprocess.Popen[bytes]) -> float:
    """Ask the process to end as a service manager does; the seconds it took."""
    started = time.monotonic()
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
    try:
        process.wait(SECONDS_TO_STOP)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    return time.monotonic() - started


def free_port() -> int:
    """One that is free, and that no outgoing connection is given while a server takes seconds to come up at it."""
    while True:
        port = secrets.choice(PORTS)
        with contextlib.suppress(OSError), socket.socket() as probe:
            probe.bind(("127.0.0.1", port))
            return port


def listens(port: int) -> bool:
    """Whether a server of this machine takes connections at this port."""
    with socket.socket() as caller:
        return caller.connect_ex(("127.0.0.1", port)) == 0


@contextlib.contextmanager
def static_site(folder: Path) -> Iterator[str]:
    """The address of `python -m http.server` with the files of this folder, once it takes connections."""
    port = free_port()
    command = [sys.executable, "-m", "http.server", str(port), "--bind", "127.0.0.1", "--directory", str(folder)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        until(lambda: process.poll() is not None or listens(port), what="the static site listens")
        assert process.poll() is None, f"http.server ended with {process.returncode}"
        yield f"http://127.0.0.1:{port}"
    finally:
        stop(process)


def _wait_until_it_answers(server: AppServer) -> None:
    deadline = time.monotonic() + SECONDS_TO_START
    while time.monotonic() < deadline and server.process.poll() is None:
        try:
            with urllib.request.urlopen(f"{server.url}/_stcore/health", timeout=2):
                return
        except OSError:
            time.sleep(0.1)
    raise AssertionError(f"The server of {server.url} did not come up. It said:\n{server.log}")
