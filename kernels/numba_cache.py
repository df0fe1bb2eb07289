"""Compiled kernels on disk are for these sources only.

Numba compares a cached function with the file it is written in. Here loops call loops of other files, which become part
of the machine code: after an edit of those, the old code would run on. So the stamp of each cached function is a digest
of all sources of the kernels.
"""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
NOT_NUMBA = ("reference.py", "triton_kernel.py")


def follow_all_sources(dispatcher: Any) -> None:
    """Let a function of `numba.njit(cache=True)` forget what was compiled from other sources. (Numba is pinned.)"""
    dispatcher._cache._cache_file._source_stamp = _digest_of_kernels()


@cache
def _digest_of_kernels() -> str:
    return digest_of(HERE)


def digest_of(folder: Path) -> str:
    """Of the names and contents of all files that Numba may compile."""
    digest = hashlib.sha256()
    for file in sorted(folder.rglob("*.py")):
        if file.name not in NOT_NUMBA:
            digest.update(str(file.relative_to(folder)).encode() + b"\0" + file.read_bytes() + b"\0")
    return digest.hexdigest()
