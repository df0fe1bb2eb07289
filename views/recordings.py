"""Runs that were recorded on the real model (engine/recorder.py), for whoever cannot run it, and labelled as such."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from typing import Any

from engine.recorder import FOLDER
from views.file_picker import TakenFile


@cache
def recordings() -> dict[str, str]:
    """Name and title of each, in the order in which they teach."""
    titles = {file.stem: json.loads(file.read_text("utf-8"))["info"]["title"] for file in FOLDER.glob("*.json")}
    order = ["one_reply", "three_samples", "beams", "short_of_blocks"]
    return {name: titles[name] for name in order if name in titles}


def recording(name: str) -> TakenFile:
    """As a file that a reader might have brought."""
    return TakenFile(f"{name}.json", (FOLDER / f"{name}.json").read_text("utf-8"))


def recorded_sentence(info: Mapping[str, Any]) -> str:
    """When and on what a trace was recorded; empty for one that says nothing of it."""
    if "recorded" not in info:
        return ""
    return f"Recorded on {info['recorded']} from {info.get('model')} in {info.get('dtype')}. Nothing runs here now."
