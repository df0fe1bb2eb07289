"""The cache folder is whole or absent, and heals itself."""

from __future__ import annotations

import errno
import os
import threading
import time
from pathlib import Path

import pytest

from engine.model.load_report import ModelUnavailableError
from engine.model.weights.cache import MANIFEST, cache_root, cached_folder


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PAGED_KV_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


class Filler:
    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, folder: Path) -> None:
        self.calls += 1
        (folder / "weights").write_bytes(b"0123456789")
        (folder / "config").write_text("{}")


def test_filled_once_and_found_afterwards(own_cache: Path) -> None:
    fill = Filler()
    folder = cached_folder("model", fill)
    assert folder == own_cache / "model" == cached_folder("model", fill)
    assert fill.calls == 1
    assert sorted(file.name for file in folder.iterdir()) == ["config", MANIFEST, "weights"]


@pytest.mark.parametrize("file", ["weights", "config", MANIFEST])
@pytest.mark.parametrize("damage", ["cut", "changed", "gone"])
def test_damage_of_any_file_is_found_and_repaired(file: str, damage: str) -> None:
    fill = Filler()
    damaged = cached_folder("model", fill) / file
    whole = damaged.read_bytes()
    if damage == "gone":
        damaged.unlink()
    else:
        damaged.write_bytes(whole[:-1] if damage == "cut" else b"?" + whole[1:])
    assert cached_folder("model", fill).joinpath(file).read_bytes() == whole
    assert fill.calls == 2


def test_a_killed_process_leaves_no_valid_cache_entry(own_cache: Path) -> None:
    unfinished = own_cache / "model.unfinished"
    unfinished.mkdir(parents=True)
    (unfinished / "half").write_text("half")
    folder = cached_folder("model", Filler())
    assert not unfinished.exists()
    assert not (folder / "half").exists()


def test_a_failure_while_filling_publishes_nothing(own_cache: Path) -> None:
    def fail(folder: Path) -> None:
        (folder / "half").write_text("half")
        raise ModelUnavailableError("no network")

    with pytest.raises(ModelUnavailableError, match="no network"):
        cached_folder("model", fail)
    assert [entry.name for entry in own_cache.iterdir()] == ["model.lock"]
    assert cached_folder("model", Filler()).is_dir()


def test_concurrent_fills_run_once() -> None:
    fill = Filler()

    def slowly(folder: Path) -> None:
        fill(folder)
        time.sleep(0.3)

    threads = [threading.Thread(target=cached_folder, args=("model", slowly)) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert fill.calls == 1


@pytest.mark.parametrize(
    ("number", "sentence"),
    [(errno.ENOSPC, "^The disk is full"), (errno.EACCES, "^The cache folder .* cannot be written")],
)
def test_disk_errors_are_reported_with_a_remedy(number: int, sentence: str) -> None:
    def fail(_folder: Path) -> None:
        raise OSError(number, "as the system says it")

    with pytest.raises(ModelUnavailableError, match=sentence) as failure:
        cached_folder("model", fail)
    assert "PAGED_KV_CACHE_DIR" in str(failure.value)


def test_an_intact_cache_needs_no_permission_to_write(monkeypatch: pytest.MonkeyPatch) -> None:
    folder = cached_folder("model", Filler())

    def refuse(*_arguments: object, **_options: object) -> None:
        raise AssertionError("took a lock, which writes a file")

    monkeypatch.setattr("filelock.FileLock", refuse)
    assert cached_folder("model", Filler()) == folder


def test_without_the_variable_the_cache_is_the_user_s(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PAGED_KV_CACHE_DIR")
    assert cache_root().name == "paged-attention-visualizer"
    assert cache_root().is_relative_to(Path.home()) or "XDG_CACHE_HOME" in os.environ
