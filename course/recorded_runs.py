"""The runs that are recorded on the embedded model, and where their traces lie, with others of real machines."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from engine.config import EngineConfig
from engine.i18n import N_
from engine.sampling_params import SamplingParams

FOLDER = Path(__file__).resolve().parent.parent / "assets" / "traces"


@dataclass(frozen=True)
class RecordedRun:
    """`title`: for a reader who chooses one. `prompts` arrive together, each with the same params."""

    title: str
    config: EngineConfig
    prompts: tuple[str, ...]
    params: SamplingParams


RUNS = {  # in the order in which they teach
    "one_reply": RecordedRun(
        N_("One prompt, one reply"),
        EngineConfig(block_size=4, num_blocks=32, max_model_len=96),
        ("The capital of France is",),
        SamplingParams(temperature=0.0, max_tokens=24),
    ),
    "three_samples": RecordedRun(
        N_("Three samples share a prompt, then copy"),
        EngineConfig(block_size=4, num_blocks=48, max_model_len=96),
        ("Once upon a time, a small brave robot",),
        SamplingParams(temperature=0.8, max_tokens=20, n=3, seed=7),
    ),
    "beams": RecordedRun(
        N_("Beam search with four beams"),
        EngineConfig(block_size=2, num_blocks=64, max_model_len=96),
        ("At dawn the ship",),
        SamplingParams(beam_width=4, n=1, max_tokens=12),
    ),
    "short_of_blocks": RecordedRun(
        N_("Three requests, too few blocks"),
        EngineConfig(block_size=4, num_blocks=16, max_model_len=48, max_num_seqs=4, enable_prefix_caching=False),
        ("Three primary colours are", "My favourite fruit is", "The sea is deep and"),
        SamplingParams(temperature=0.0, max_tokens=20, ignore_eos=True),
    ),
}


def recording_titles(folder: Path = FOLDER) -> dict[str, str]:
    """Name (without `.json`) and title of each recording in `folder`: RUNS as they teach, then others by name.

    tools/recorder.py makes those of RUNS, benchmarks/gpu_day one of the machine that it runs on.
    """
    names = [name for name in RUNS if (folder / f"{name}.json").exists()]
    names += sorted(file.stem for file in folder.glob("*.json") if file.stem not in RUNS)
    infos = {name: json.loads((folder / f"{name}.json").read_text("utf-8"))["info"] for name in names}
    return {name: str(info["title"]) for name, info in infos.items() if info.get("source") == "recording"}
