"""What the machine is: card, driver, packages beside the pins, and whether the embedded weights are there."""

from __future__ import annotations

import platform
import re
import shutil
import subprocess
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path

import torch

from benchmarks.gpu_day.context import Context
from benchmarks.gpu_day.findings import Finding, Measured, Remark
from benchmarks.gpu_day.models import obstacle_to_embedded
from benchmarks.tables import processor_name
from engine.model.device import unused_gpu

ROOT = Path(__file__).resolve().parents[2]
PIN = re.compile(r"^([a-z0-9-]+)([=<>!~]=?[^;\s]+)", re.M)
BESIDES = ("pytest", "pytest-xdist", "vllm")


def run(context: Context) -> Iterator[Finding]:
    yield Measured({
        "python": platform.python_version(), "system": platform.platform(), "processor": processor_name(),
        "threads": torch.get_num_threads(), "CUDA": torch.version.cuda or "none", "HIP": torch.version.hip or "none",
        "commit": _commit(),
    })  # fmt: skip
    if context.on_card:
        yield Measured(_card(context.device))
    else:
        yield Remark(unused_gpu() or "torch sees no GPU here: figures below are a CPU's and say nothing about a card.")
    for name, pin in pins((ROOT / "requirements.txt").read_text("utf-8")).items():
        yield Measured({"package": name, "installed": installed(name), "pin": pin})
    for name in BESIDES:
        yield Measured({"package": name, "installed": installed(name)})
    obstacle = obstacle_to_embedded()
    yield Remark(f"The embedded weights are not used: {obstacle}." if obstacle else "The embedded weights are here.")


def pins(requirements: str) -> dict[str, str]:
    """`torch` -> `==2.13.0`, in the order of the file."""
    return dict(PIN.findall(requirements))


def installed(name: str) -> str:
    """Its version, or that it is missing. Other versions than the pins are told, and nothing more."""
    if find_spec(name.replace("-", "_").replace("pytest_xdist", "xdist").replace("pyzmq", "zmq")) is None:
        return "not installed"
    try:
        return version(name)
    except PackageNotFoundError:
        return "of unknown version"


def _card(device: torch.device) -> dict[str, object]:
    card = torch.cuda.get_device_properties(device)
    return {
        "card": card.name, "capability": f"{card.major}.{card.minor}", "multiprocessors": card.multi_processor_count,
        "memory GiB": round(card.total_memory / 2**30, 1), "L2 MiB": round(card.L2_cache_size / 2**20, 1),
        "nvidia-smi": _answer_of("nvidia-smi", "--query-gpu=driver_version,clocks.sm,clocks.mem,power.limit",
                                 "--format=csv,noheader"),
    }  # fmt: skip


def _commit() -> str:
    return _answer_of("git", "-C", str(ROOT), "rev-parse", "--short", "HEAD")


def _answer_of(*command: str) -> str:
    """Its first line, or `unknown`."""
    if shutil.which(command[0]) is None:
        return "unknown"
    done = subprocess.run(command, capture_output=True, text=True, timeout=10, check=False)
    return (done.stdout.strip().splitlines() or ["unknown"])[0]
