"""What every benchmark prints: where and when it ran, and a table, or the same as JSON."""

from __future__ import annotations

import json
import platform
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version

import torch

Row = dict[str, object]
PACKAGES = ("torch", "numba", "triton", "transformers")


def progress(text: str) -> None:
    """One line to the person who waits."""
    print(text, file=sys.stderr, flush=True)


def show(rows: Sequence[Row], *, as_json: bool, command: str, notes: Sequence[str] = ()) -> None:
    """Print the rows with the machine they are from; `command` is what was typed, `notes` say what is not there."""
    machine = describe_machine()
    if as_json:
        print(json.dumps({"command": command, "machine": machine, "notes": list(notes), "rows": list(rows)}, indent=1))
        return
    print(f"{command}\n" + "\n".join(f"{name}: {value}" for name, value in machine.items()))
    print_table(rows)
    for note in notes:
        print(note)


def describe_machine() -> dict[str, str]:
    """Date, processor or card, threads and versions."""
    return {
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "processor": f"{processor_name()}, {torch.get_num_threads()} threads",
        "GPU": torch.cuda.get_device_name() if torch.cuda.is_available() else "none",
        "versions": f"Python {platform.python_version()}, "
        + ", ".join(f"{name} {_version_of(name)}" for name in PACKAGES),
    }


def processor_name() -> str:
    """As the operating system calls it."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as lines:
            name = next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), "")
    except OSError:
        name = ""
    return name or platform.processor() or platform.machine()


def print_table(rows: Sequence[Row]) -> None:
    """What is missing in a row, because it cannot run there, leaves a dash."""
    columns = list(dict.fromkeys(name for row in rows for name in row))
    lines = [columns, *([str(row.get(name, "-")) for name in columns] for row in rows)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(columns))]
    for line in lines:
        print("  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)))


def _version_of(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"
