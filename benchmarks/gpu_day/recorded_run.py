"""The trace of a real run on this machine, as a file that the page of trace files lists once it is in assets/traces."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from benchmarks.gpu_day.context import Context
from benchmarks.gpu_day.findings import Finding, Measured
from course.recorded_runs import RUNS
from tools.recorder import record

RUN = RUNS["three_samples"]


def run(context: Context) -> Iterator[Finding]:
    config = replace(RUN.config, model=context.text_model(), device=context.device.type)
    title = f"{RUN.title}, on {context.device_name}"
    trace = record(replace(RUN, title=title, config=config), device_name=context.device_name)
    file = context.out / f"{name_of_file(context.device_name)}.json"
    file.write_text(trace.to_json(), "utf-8")
    info = trace.info
    yield Measured({
        "file": file.name, "kB": file.stat().st_size / 1e3, "events": len(trace), "recorded on": info["device_name"],
        "date": info["recorded"], "model": info["model"], "dtype": info["dtype"], "backend": info["backend"],
    })  # fmt: skip


def name_of_file(device_name: str) -> str:
    """`NVIDIA H200` -> `recorded-on-nvidia-h200`."""
    return f"recorded-on-{re.sub('[^a-z0-9]+', '-', device_name.lower()).strip('-')}"
