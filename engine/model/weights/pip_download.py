"""One wheel from the Python package index, by the user's own pip, so that their index and proxy settings apply.

Progress is read off the growth of the file pip is writing, which works with every version of pip.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from engine.i18n import _
from engine.model.load_report import ModelUnavailableError

POLL_SECONDS = 0.1
BEGUN_BYTES = 1 << 20  # more than an index page: the wheel itself was arriving


class DownloadInterruptedError(Exception):
    """The download broke off, or what came was refused by pip, after it had begun: worth another attempt."""


def pip_download(requirement: str, folder: Path, *, use_pip_cache: bool, report: Callable[[int], None]) -> None:
    """Put the wheel of `requirement` into `folder`; `report` takes the bytes so far. pip never outlives this call.

    Raises DownloadInterruptedError, or ModelUnavailableError when nothing arrived at all.
    """
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        log = Path(scratch) / "pip.log"
        returncode, received = _run_pip(_command(requirement, folder, use_pip_cache), folder, log, report)
        if returncode == 0:
            return
        printed = log.read_text("utf-8", "replace")
    if received > BEGUN_BYTES and not _is_disk_full(printed):
        raise DownloadInterruptedError(_why_pip_failed(printed))
    raise ModelUnavailableError(_why_pip_failed(printed))


def _run_pip(command: list[str], folder: Path, log: Path, report: Callable[[int], None]) -> tuple[int, int]:
    """pip's exit code and the most bytes seen."""
    received = 0
    # pip downloads into its temporary folder: give it one that can be watched.
    temporary = dict.fromkeys(("TMPDIR", "TEMP", "TMP"), str(log.parent))
    with log.open("wb") as output:
        process = subprocess.Popen(
            command,
            env=os.environ | temporary,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
        try:
            while process.poll() is None:
                received = max(received, _largest_file(folder))
                report(received)
                time.sleep(POLL_SECONDS)
        finally:
            process.kill()
            process.wait()
    return process.returncode, received


def _command(requirement: str, folder: Path, use_pip_cache: bool) -> list[str]:
    command = [sys.executable, "-m", "pip", "download", requirement, "--no-deps", "--only-binary=:all:"]
    command += ["--dest", str(folder), "--no-input", "--disable-pip-version-check", "--progress-bar=off"]
    return command if use_pip_cache else [*command, "--no-cache-dir"]


def _largest_file(folder: Path) -> int:
    """Size in bytes. The largest, not the sum: pip copies the finished wheel before it removes its own."""
    largest = 0
    for parent, _folders, names in os.walk(folder):
        for name in names:
            try:
                largest = max(largest, os.stat(os.path.join(parent, name)).st_size)
            except FileNotFoundError:
                continue  # pip moved it while we looked
    return largest


def _is_disk_full(log: str) -> bool:
    return "No space left" in log or "Errno 28" in log


def _why_pip_failed(log: str) -> str:
    """One sentence on what happened and what to do, from what pip printed."""
    if "No module named pip" in log:
        return _(
            "This Python has no pip to download the model with. Run `{executable} -m ensurepip`, then start again."
        ).format(executable=sys.executable)
    if _is_disk_full(log):
        return _("The disk is full: the model needs 400 MB while it is set up. Free some space, then start again.")
    lines = [line.strip() for line in log.splitlines() if line.strip().startswith("ERROR")]
    detail = lines[-1].removeprefix("ERROR:").strip() if lines else "it gave no reason"
    return (
        "The model is not on this machine yet and could not be fetched. Connect to the network once and start "
        f"again; after that no network is needed. (pip: {detail})"
    )
