"""Compiled kernels on disk: for these sources only, and only as they were written.

Numba compares a cached function with the file it is written in. Here loops call loops of other files, which become part
of the machine code: after an edit of those, the old code would run on. So the stamp of each cached function is a digest
of all sources that Numba compiles.

Nor does Numba check what it reads. A file that a crash or a full disk has cut fails every call at every start; an index
that was written just before a crash names the old code beside it; and two processes that compile two signatures of one
function at once give both the same file. So each entry says what it holds, with a checksum. What is not the right one
is compiled anew and replaced.
"""

from __future__ import annotations

import hashlib
import logging
import pickle
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from numba.core.caching import FunctionCache, IndexDataCacheFile, NullCache

from kernels.registry import BACKENDS

HERE = Path(__file__).parent
NOT_COMPILED = frozenset(
    {"__init__", "backend", "interface", "numba_cache", "outline", "registry", "self_test", "threads"}
    | {spec.name for spec in BACKENDS if not spec.compiled_by_numba}
)
"""Files of these names, alone or before an underscore, have no line that becomes part of what Numba compiles."""

_log = logging.getLogger(__name__)


def cache_of(function: Callable[..., Any]) -> Any:
    """A cache for the `_cache` of a Numba dispatcher; one that stores nothing where no folder can be written."""
    try:
        return KernelCache(function)
    except RuntimeError:
        _warn_once("no folder can be written to keep compiled kernels in: each start compiles them (NUMBA_CACHE_DIR)")
        return NullCache()


class KernelCache(FunctionCache):  # type: ignore[misc]
    """The cache of one function of `numba.njit`. Raises RuntimeError where no folder can be written.

    Nothing that is wrong with a file of it, or with the disk, fails a call: the function is compiled.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        self._cache_file = _CheckedFiles(self._cache_path, self._impl.filename_base, _digest_of_kernels())

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """The compiled function from disk, or None; a damaged file counts as none and is logged."""
        try:
            return super().load_overload(sig, target_context)
        except Exception as error:
            name = self._py_func.__qualname__
            _log.warning("compiling %s anew: what is kept in %s is damaged (%r)", name, self._cache_path, error)
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Write a compiled function to disk; a disk that refuses is logged once."""
        try:
            super().save_overload(sig, data)
        except OSError as error:
            _warn_once(f"compiled kernels cannot be kept in {self._cache_path} ({error}): each start compiles them")


class _CheckedFiles(IndexDataCacheFile):  # type: ignore[misc]
    """An index, and a file for each entry: (stamp, key, checksum, pickled data)."""

    def save(self, key: Any, data: Any) -> None:
        packed = self._dump(data)
        super().save(key, (self._source_stamp, key, hashlib.sha256(packed).digest(), packed))

    def load(self, key: Any) -> Any:
        """The data, or None when there is none for this key. Raises whatever comes of a damaged file."""
        entry = super().load(key)
        if entry is None:
            return None
        stamp, stored_key, checksum, packed = entry
        if (stamp, stored_key) != (self._source_stamp, key):
            return None
        if hashlib.sha256(packed).digest() != checksum:
            raise ValueError("not the bytes that were written")
        return pickle.loads(packed)

    def _load_index(self) -> Any:
        """Empty when it is damaged: it is written anew with the next entry."""
        try:
            return super()._load_index()
        except Exception as error:
            _warn_once(f"compiling anew: {self._index_path} is damaged ({error!r})")
            return {}


@cache
def _warn_once(sentence: str) -> None:
    _log.warning(sentence)


@cache
def _digest_of_kernels() -> str:
    return digest_of(HERE)


def digest_of(folder: Path) -> str:
    """SHA-256 over names and contents of all files that Numba may compile, in hexadecimal."""
    digest = hashlib.sha256()
    for file in sorted(folder.rglob("*.py")):
        if not has_no_compiled_code(file):
            digest.update(str(file.relative_to(folder)).encode() + b"\0" + file.read_bytes() + b"\0")
    return digest.hexdigest()


def has_no_compiled_code(file: Path) -> bool:
    """Whether Numba compiles no line of the file, so that an edit of it changes no machine code."""
    return file.stem in NOT_COMPILED or file.stem.split("_")[0] in NOT_COMPILED
