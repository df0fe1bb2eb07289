"""Checks of Python, packages, memory and disk."""

from __future__ import annotations

import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from importlib.metadata import version
from pathlib import Path

from course.finding import Finding

ROOT = Path(__file__).resolve().parents[2]
REQUIREMENTS = ROOT / "requirements.txt"
ROCM_REQUIREMENTS = ROOT / "requirements-rocm.txt"
CPU_REQUIREMENTS = ROOT / "requirements-cpu.txt"
OLDEST_PYTHON, NEWEST_PYTHON = (3, 11), (3, 13)
INSTALL = "Run `pip install -r {}` in the virtual environment that runs the app."
MEMORY_BYTES = 1_500_000_000
"""The app with the embedded model takes about 1 GB; forty tabs add little."""


def check_python(current: tuple[int, int] = sys.version_info[:2]) -> Finding:
    """Whether this Python version is supported."""
    found = f"Python {current[0]}.{current[1]}."
    if OLDEST_PYTHON <= current <= NEWEST_PYTHON:
        return Finding("Python", found)
    return Finding("Python", found, "Make the virtual environment with Python 3.11, 3.12 or 3.13.")


def check_packages(installed: Callable[[str], str] = version) -> Finding:
    """Every pin for this platform against what is installed. Imports none of them.

    A torch for ROCm is held against requirements-rocm.txt, one without CUDA and without triton against
    requirements-cpu.txt, anything else against requirements.txt.
    """
    torch = _version_of("torch", installed)
    is_rocm = "+rocm" in torch
    is_for_cpu = "+cpu" in torch and not _version_of("triton", installed)
    requirements = ROCM_REQUIREMENTS if is_rocm else CPU_REQUIREMENTS if is_for_cpu else REQUIREMENTS
    pins = list(pinned_packages(requirements))
    wrong = [problem for name, pin in pins if (problem := _problem(name, pin, installed))]
    if is_rocm and _version_of("triton", installed):
        fix = "Run `pip uninstall triton`, then `pip install --force-reinstall -r requirements-rocm.txt`."
        return Finding("Packages", "PyPI's triton lies over the files of torch's own, triton-rocm.", fix)
    if wrong:
        return Finding("Packages", f"{'; '.join(wrong)}.", INSTALL.format(requirements.name))
    return Finding("Packages", f"All {len(pins)} packages have the versions they were tested with.")


def pinned_packages(requirements: Path = REQUIREMENTS) -> Iterator[tuple[str, str]]:
    """Name and version specifier of each requirement for this platform."""
    for line in requirements.read_text("utf-8").splitlines():
        requirement, _, marker = line.split("#")[0].partition(";")
        if match := re.fullmatch(r"\s*([A-Za-z0-9_.-]+)\s*([<>=!~].*?)\s*", requirement):
            if "sys_platform" in marker and f'"{sys.platform}"' not in marker:
                continue
            yield match[1], match[2]


def check_memory(free_bytes: int | None) -> Finding:
    """`free_bytes`: what can be allocated now; None where the system does not tell."""
    if free_bytes is None:
        return Finding("Memory", "This system does not say how much memory is free.")
    found = f"{free_bytes / 1e9:.1f} GB free."
    if free_bytes >= MEMORY_BYTES:
        return Finding("Memory", found)
    return Finding("Memory", found, f"Close other programs until {MEMORY_BYTES / 1e9:.1f} GB are free.")


def check_disk(folder: Path, needed_bytes: int) -> Finding:
    """Space for the model while it is converted, in a folder that can be written. `folder` need not exist yet."""
    there = next(parent for parent in (folder, *folder.parents) if parent.exists())
    free = shutil.disk_usage(there).free
    try:
        tempfile.TemporaryFile(dir=there).close()
    except OSError as error:
        fix = "Set PAGED_KV_CACHE_DIR to a folder that can be written."
        return Finding("Disk", f"The model's cache cannot be written in {there} ({error.strerror}).", fix)
    found = f"{free / 1e9:.1f} GB free for the model's cache."
    if free >= needed_bytes:
        return Finding("Disk", found)
    fix = f"Free {needed_bytes / 1e6:.0f} MB, or set PAGED_KV_CACHE_DIR to a folder on another disk."
    return Finding("Disk", found, fix)


def _version_of(name: str, installed: Callable[[str], str]) -> str:
    """Empty when it is not installed."""
    try:
        return installed(name)
    except ModuleNotFoundError:  # a package that is not installed raises a kind of it
        return ""


def _problem(name: str, pin: str, installed: Callable[[str], str]) -> str:
    try:
        from packaging.specifiers import SpecifierSet
    except ModuleNotFoundError:
        return f"{name} is not checked, because packaging is not installed"
    if not (there := _version_of(name, installed)):
        return f"{name} is not installed"
    # A CUDA or CPU build says so behind a plus sign; the pin means both.
    is_right = SpecifierSet(pin).contains(there.split("+")[0], prereleases=True)
    return "" if is_right else f"{name} is {there}, tested with {pin}"
