"""Runs that were recorded on the real model (engine/recorder.py), for whoever cannot run it, and labelled as such."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from typing import Any

from engine.recorder import FOLDER, RUNS
from views.file_picker import TakenFile


@cache
def recordings() -> dict[str, str]:
    """Name and title of each that is there, as its own file says, in the order in which they teach."""
    files = {name: recording(name) for name in RUNS if (FOLDER / f"{name}.json").exists()}
    return {name: json.loads(file.text)["info"]["title"] for name, file in files.items()}


def recording(name: str) -> TakenFile:
    """As a file that a reader might have brought."""
    file = FOLDER / f"{name}.json"
    return TakenFile(file.name, file.read_text("utf-8"))


def recorded_sentence(info: Mapping[str, Any]) -> str:
    """When and on what a trace was recorded; empty for one that says nothing of it."""
    if "recorded" not in info:
        return ""
    return f"Recorded on {info['recorded']} from {info.get('model')} in {info.get('dtype')}. Nothing runs here now."
