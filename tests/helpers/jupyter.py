"""A JupyterLab of its own, on this machine alone, with nothing of the user's in it."""

from __future__ import annotations

import contextlib
import os
import secrets
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.helpers.app_server import ROOT, free_port, stop
from tests.helpers.waiting import until

FOLDERS = ("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR", "JUPYTERLAB_SETTINGS_DIR",
           "JUPYTERLAB_WORKSPACES_DIR", "IPYTHONDIR")  # fmt: skip
QUIET = '{"fetchNews": "false", "checkForUpdates": false}'
"""Otherwise it asks the reader about news and asks another server for updates."""


@contextlib.contextmanager
def running_jupyterlab(notebooks: Path, own: Path) -> Iterator[tuple[str, str]]:
    """Its address and its token. It serves the folder `notebooks`; which of them it trusts stands in `own`."""
    if find_spec("jupyterlab") is None:
        reason = "No JupyterLab here: pip install -r requirements-dev.txt."
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    settings = own / "JUPYTERLAB_SETTINGS_DIR" / "@jupyterlab" / "apputils-extension"
    settings.mkdir(parents=True)
    (settings / "notification.jupyterlab-settings").write_text(QUIET, "utf-8")
    port, token = free_port(), secrets.token_hex(16)
    command = [sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root", "--ServerApp.ip=127.0.0.1"]
    command += [f"--ServerApp.port={port}", "--ServerApp.port_retries=0", f"--IdentityProvider.token={token}"]
    command += [f"--ServerApp.root_dir={notebooks}"]
    environment = {**os.environ, **{name: str(own / name) for name in FOLDERS}, "PYTHONPATH": str(ROOT)}
    with (own / "jupyterlab.log").open("wb") as log:
        process = subprocess.Popen(command, cwd=own, env=environment, stdout=log, stderr=subprocess.STDOUT)
    address = f"http://127.0.0.1:{port}"
    try:
        until(lambda: process.poll() is not None or _answers(f"{address}/api?token={token}"), what="JupyterLab answers")
        assert process.poll() is None, (own / "jupyterlab.log").read_text("utf-8")
        yield address, token
    finally:
        stop(process)


def _answers(address: str) -> bool:
    try:
        with urllib.request.urlopen(address, timeout=2):
            return True
    except OSError:
        return False
