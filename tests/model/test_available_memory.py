"""Memory left on the machine, or in the container it is shut into."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from engine.model import device as module
from engine.model.device import available_memory

GIB = 2**30


@pytest.fixture
def linux(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A control group's folder, without a limit yet, on a machine with 8 GiB to spare."""
    meminfo = tmp_path / "meminfo"
    meminfo.write_text(f"MemTotal:  {16 * GIB // 1024} kB\nMemAvailable:  {8 * GIB // 1024} kB\n")
    monkeypatch.setattr(module.platform, "system", lambda: "Linux")  # type: ignore[attr-defined]
    monkeypatch.setattr(module, "MEMINFO", meminfo)
    monkeypatch.setattr(module, "CGROUP", tmp_path)
    return tmp_path


def limit(cgroup: Path, most: str, used: int) -> None:
    (cgroup / "memory.max").write_text(f"{most}\n")
    (cgroup / "memory.current").write_text(f"{used}\n")


def test_available_memory_without_a_container(linux: Path) -> None:
    assert available_memory(torch.device("cpu")) == 8 * GIB


@pytest.mark.parametrize(
    ("most", "used", "left"),
    [("max", GIB, 8 * GIB), (str(3 * GIB), GIB, 2 * GIB), (str(GIB), 2 * GIB, 0), (str(100 * GIB), GIB, 8 * GIB)],
)
def test_available_memory_in_a_container(linux: Path, most: str, used: int, left: int) -> None:
    limit(linux, most, used)
    assert available_memory(torch.device("cpu")) == left


def test_available_memory_of_other_devices_is_unknown() -> None:
    assert available_memory(torch.device("meta")) is None


def test_available_memory_of_this_machine() -> None:
    left = available_memory(torch.device("cpu"))
    assert left is not None and left > 2**20
