"""What was compiled from other sources, or was damaged since, is compiled anew; no disk fails a call."""

import errno
import importlib.util
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from shutil import copytree, ignore_patterns
from typing import Any

import pytest

pytest.importorskip("numba")
import numba
from numba.core.caching import IndexDataCacheFile, _CacheLocator
from numba.misc.appdirs import AppDirs

from kernels import numba_cache
from kernels.numba_cache import HERE, digest_of, has_no_compiled_code

NORMALISE = """
import torch
from kernels.rms_norm.cpu import rms_norm_rows, rms_norm
print(rms_norm(torch.full((1, 4), 2.0), torch.ones(4), 0.0)[0, 0].item(), sum(rms_norm_rows.stats.cache_hits.values()))
"""


def run_in(project: Path) -> str:
    environment = os.environ | {"PYTHONPATH": str(project)}
    environment.pop("NUMBA_CACHE_DIR", None)
    program = [sys.executable, "-c", NORMALISE]
    done = subprocess.run(program, cwd=project, env=environment, capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.mark.slow
def test_a_change_in_an_inlined_file_invalidates_the_cache(tmp_path: Path) -> None:
    copytree(HERE, tmp_path / "kernels", ignore=ignore_patterns("__pycache__"))
    assert [run_in(tmp_path), run_in(tmp_path)] == ["1.0 0", "1.0 1"]
    inlined = tmp_path / "kernels" / "numba_intrinsics.py"
    widen = "return types.float32(types.float32), lambda _context, _builder, _signature, arguments: arguments[0]"
    source = inlined.read_text("utf-8")
    assert widen in source
    doubled = widen.replace("_builder", "builder").replace("arguments[0]", "builder.fadd(arguments[0], arguments[0])")
    inlined.write_text(source.replace(widen, doubled), "utf-8")
    assert run_in(tmp_path) == "2.0 0", "the row's length is divided out, but the weight counts double now"


def test_the_digest_covers_names_and_contents_of_compiled_files(tmp_path: Path) -> None:
    (tmp_path / "cpu.py").write_text("a = 1", "utf-8")
    first = digest_of(tmp_path)
    for name in ("reference.py", "backend.py", "triton_kernel.py", "triton_tile.py", "triton_config.py", "__init__.py"):
        (tmp_path / name).write_text("b = 1", "utf-8")
    assert digest_of(tmp_path) == first
    (tmp_path / "cpu.py").write_text("a = 2", "utf-8")
    assert digest_of(tmp_path) != first
    (tmp_path / "cpu.py").rename(tmp_path / "cpu_decode.py")
    (tmp_path / "cpu_decode.py").write_text("a = 1", "utf-8")
    assert digest_of(tmp_path) != first


def test_files_left_out_of_the_digest_are_never_compiled() -> None:
    left_out = [file for file in HERE.rglob("*.py") if has_no_compiled_code(file)]
    assert {file.name for file in left_out} >= {"reference.py", "triton_tile.py", "triton_decode.py", "interface.py"}
    compiling = re.compile(r"^ *@(compiled|numba\.|njit|intrinsic|overload\()", re.MULTILINE)
    assert [file for file in left_out if compiling.search(file.read_text("utf-8"))] == []


TOY = """
from kernels.numba_intrinsics import compiled

@compiled()
def more(x):
    return x + {amount}
"""


class Starts:
    """Each `start` is a new process's as far as Numba's cache can tell: a new function that was compiled by nobody."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / "toy.py"
        self.cache = folder / "__pycache__"

    def start(self, amount: int = 1) -> Any:
        """The compiled function that adds `amount`."""
        self.file.write_text(TOY.format(amount=amount), "utf-8")
        spec = importlib.util.spec_from_file_location("toy", self.file)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module.more

    def kept(self, suffix: str) -> Path:
        [file] = self.cache.glob(f"*.{suffix}")
        return file


def num_hits(function: Any) -> int:
    return sum(function.stats.cache_hits.values())


@pytest.fixture
def starts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Starts]:
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.setattr(numba.config, "CACHE_DIR", "")
    numba_cache._warn_once.cache_clear()
    yield Starts(tmp_path)
    numba_cache._warn_once.cache_clear()


def test_compiled_code_is_loaded_at_the_next_start(starts: Starts, caplog: pytest.LogCaptureFixture) -> None:
    first, second = starts.start(), starts.start()
    assert (first(1), num_hits(first), second(1), num_hits(second)) == (2, 0, 2, 1)
    assert caplog.messages == []


def emptied(data: bytes) -> bytes:
    return b""


def cut(data: bytes) -> bytes:
    return data[: len(data) // 2]


def changed(data: bytes) -> bytes:
    """One byte in the middle: in a data file, of the machine code."""
    middle = len(data) // 2
    return data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :]


@pytest.mark.parametrize("suffix, damaged", [
    ("nbi", emptied), ("nbi", cut), ("nbc", emptied), ("nbc", cut), ("nbc", changed),
])  # fmt: skip
def test_a_damaged_cache_file_is_recompiled_with_one_log_line(
    starts: Starts, caplog: pytest.LogCaptureFixture, suffix: str, damaged: Callable[[bytes], bytes]
) -> None:
    assert starts.start()(1) == 2
    file = starts.kept(suffix)
    file.write_bytes(damaged(file.read_bytes()))
    second = starts.start()
    assert (second(1), num_hits(second)) == (2, 0)
    [line] = caplog.messages
    assert "anew" in line and str(starts.cache) in line
    third = starts.start()
    assert (third(1), num_hits(third)) == (2, 1)
    assert len(caplog.messages) == 1


class KilledError(BaseException):
    """Nothing catches it, as nothing catches a kill."""


@pytest.mark.parametrize("dying", ["_save_index", "_save_data"])
def test_a_kill_during_a_write_leaves_no_stale_code(
    starts: Starts, monkeypatch: pytest.MonkeyPatch, dying: str
) -> None:
    def die(*_arguments: object) -> None:
        raise KilledError

    monkeypatch.setattr(numba_cache, "_digest_of_kernels", lambda: "old")
    assert starts.start(amount=1)(1) == 2
    monkeypatch.setattr(numba_cache, "_digest_of_kernels", lambda: "new")
    with monkeypatch.context() as killing, pytest.raises(KilledError):
        killing.setattr(IndexDataCacheFile, dying, die)
        starts.start(amount=2)(1)
    after = starts.start(amount=2)
    assert (after(1), num_hits(after)) == (3, 0)
    later = starts.start(amount=2)
    assert (later(1), num_hits(later)) == (3, 1)


def test_two_concurrent_first_starts_never_mix_their_code(starts: Starts, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both have seen an empty index, so both call their file the first one, and the index names the other's code."""
    one, other = starts.start(), starts.start()
    save_data = IndexDataCacheFile._save_data

    def save_after_the_other(files: object, name: str, data: object) -> None:
        at_once.setattr(IndexDataCacheFile, "_save_data", save_data)
        assert other(1.5) == 2.5
        save_data(files, name, data)

    with monkeypatch.context() as at_once:
        at_once.setattr(numba_cache._CheckedFiles, "_load_index", lambda _files: {})
        at_once.setattr(IndexDataCacheFile, "_save_data", save_after_the_other)
        assert one(1) == 2
    for hits in (0, 2):
        later = starts.start()
        assert (later(1), later(1.5), num_hits(later)) == (2, 2.5, hits)


def test_without_a_writable_cache_folder_each_start_compiles(
    starts: Starts, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    starts.cache.write_text("a file where the folder would be", "utf-8")
    monkeypatch.setattr(AppDirs, "user_cache_dir", str(starts.cache / "below"))
    for _ in range(2):
        function = starts.start()
        assert (function(1), num_hits(function)) == (2, 0)
    [line] = caplog.messages
    assert line.startswith("no folder can be written to keep compiled kernels in")


@pytest.mark.parametrize("failing, code", [
    ((IndexDataCacheFile, "_open_for_write"), errno.ENOSPC), ((_CacheLocator, "ensure_cache_path"), errno.EROFS),
])  # fmt: skip
def test_a_full_or_read_only_disk_fails_no_call(
    starts: Starts,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    failing: tuple[type, str],
    code: int,
) -> None:
    def refuse(*_arguments: object) -> None:
        raise OSError(code, os.strerror(code))

    function = starts.start()
    with monkeypatch.context() as full:
        full.setattr(*failing, refuse)
        assert (function(1), function(1.5)) == (2, 2.5)
    [line] = caplog.messages
    assert os.strerror(code) in line and "cannot be kept" in line
    assert list(starts.cache.iterdir()) == []
    later = starts.start()
    assert (later(1), num_hits(later)) == (2, 0)
