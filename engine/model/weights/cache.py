"""Folders of converted weights that survive a restart: published whole, checked at every start, never half there.

A folder is filled beside its final place and then renamed into it, so a process that dies midway leaves only a
temporary folder, which the next one removes. `manifest.json`, written last, holds the sha256 of every file.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from engine.i18n import _
from engine.model.load_report import ModelUnavailableError

CACHE_VARIABLE = "PAGED_KV_CACHE_DIR"
MANIFEST = "manifest.json"
LOCK_SECONDS = 1800.0
DISK_FULL = (errno.ENOSPC, errno.EDQUOT)
NOT_WRITABLE = (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR, errno.EEXIST)


def cache_root() -> Path:
    """The user's cache folder of this project; the environment variable PAGED_KV_CACHE_DIR moves it."""
    if named := os.environ.get(CACHE_VARIABLE):
        return Path(named)
    from platformdirs import user_cache_dir  # here, as filelock below: the tiny model runs without both

    return Path(user_cache_dir("paged-attention-visualizer", appauthor=False))


def cached_folder(name: str, fill: Callable[[Path], None]) -> Path:
    """The folder `name` of the cache, made by `fill(empty folder)` unless an intact one is there.

    A damaged folder is removed and filled again. Two processes never fill the same one: the second waits.
    Raises ModelUnavailableError when the disk is full or the cache cannot be written.
    """
    folder = cache_root() / name
    if is_intact(folder):  # before any lock, so that a read-only cache works
        return folder
    with _plain_disk_errors(folder), _locked(folder):
        if not is_intact(folder):
            _remove(folder)
            _publish(folder, fill)
    return folder


def cached_copy(folder: Path, root: Path) -> Path:
    """Copy a folder of the cache into another cache's `root`, whole: its manifest goes with it."""
    target = root / folder.name
    shutil.copytree(folder, target)
    return target


def is_intact(folder: Path) -> bool:
    """Whether the folder holds exactly the bytes its manifest promises."""
    try:
        promised = json.loads((folder / MANIFEST).read_text("utf-8"))
        return bool(promised) and all(sha256_of(folder / name) == digest for name, digest in promised.items())
    except (OSError, ValueError, AttributeError):
        return False


def sha256_of(file: Path) -> str:
    """The SHA-256 of a file, in hexadecimal."""
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _publish(folder: Path, fill: Callable[[Path], None]) -> None:
    unfinished = folder.with_name(f"{folder.name}.unfinished")
    _remove(unfinished)
    unfinished.mkdir(parents=True)
    try:
        fill(unfinished)
        digests = {file.name: sha256_of(file) for file in sorted(unfinished.iterdir())}
        (unfinished / MANIFEST).write_text(json.dumps(digests, indent=1), "utf-8")
        unfinished.rename(folder)
    finally:
        _remove(unfinished)


def _remove(folder: Path) -> None:
    if folder.exists():
        shutil.rmtree(folder)


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    from filelock import FileLock, Timeout

    folder.parent.mkdir(parents=True, exist_ok=True)
    lock = FileLock(folder.with_name(f"{folder.name}.lock"))
    try:
        with lock.acquire(timeout=LOCK_SECONDS):
            yield
    except Timeout:
        raise ModelUnavailableError(
            _(
                "Another process has been downloading {name} for {lock_seconds:.0f} minutes. End it, then start again."
            ).format(name=folder.name, lock_seconds=LOCK_SECONDS / 60)
        ) from None


@contextmanager
def _plain_disk_errors(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno in DISK_FULL:
            raise ModelUnavailableError(
                _(
                    "The disk is full: the weights did not fit in {parent}. Free some space, or set "
                    "{cache_variable} to a folder on another disk."
                ).format(parent=folder.parent, cache_variable=CACHE_VARIABLE)
            ) from error
        if error.errno in NOT_WRITABLE:
            raise ModelUnavailableError(
                _(
                    "The cache folder {parent} cannot be written ({strerror}). Set {cache_variable} to a "
                    "folder that can."
                ).format(parent=folder.parent, strerror=error.strerror, cache_variable=CACHE_VARIABLE)
            ) from error
        raise
