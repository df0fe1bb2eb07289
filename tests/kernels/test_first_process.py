"""The process that compiles the kernels gives the bits that those give which read them from the disk."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("numba")


def digests(cache: Path, *options: str) -> dict[str, str]:
    """What each kernel gives in a new process over a cache of compiled kernels."""
    command = [sys.executable, "-m", "tests.helpers.kernel_digests", *options]
    environment = os.environ | {"NUMBA_CACHE_DIR": str(cache), "OMP_NUM_THREADS": "2"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=1200)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.slow
def test_the_first_process_and_later_ones_give_the_same_bits_whatever_they_call_first(tmp_path: Path) -> None:
    compiling = digests(tmp_path)
    assert len(compiling) > 60
    files = {file: file.stat().st_mtime_ns for file in tmp_path.rglob("*.nb?")}
    loading, reversed_order = digests(tmp_path), digests(tmp_path, "--reversed")
    assert files == {file: file.stat().st_mtime_ns for file in tmp_path.rglob("*.nb?")}, "something was compiled again"
    assert [name for name in compiling if loading[name] != compiling[name]] == []
    assert [name for name in compiling if reversed_order[name] != loading[name]] == []
