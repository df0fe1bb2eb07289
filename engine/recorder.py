"""Record real runs of the embedded model, for machines that cannot run it: python -m engine.recorder [FOLDER]

A recording is a trace like any other; its `info` says that it is recorded, when, and on what. Pages say so too.
"""

from __future__ import annotations

import argparse
import datetime
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from engine.config import EngineConfig
from engine.sampling_params import SamplingParams
from engine.trace import Trace

FOLDER = Path(__file__).resolve().parent.parent / "assets" / "traces"


@dataclass(frozen=True)
class Run:
    """`title`: for a reader who chooses one. `prompts` arrive together, each with the same params."""

    title: str
    config: EngineConfig
    prompts: tuple[str, ...]
    params: SamplingParams


RUNS = {  # in the order in which they teach
    "one_reply": Run(
        "One prompt, one reply",
        EngineConfig(block_size=4, num_blocks=32, max_model_len=96),
        ("The capital of France is",),
        SamplingParams(temperature=0.0, max_tokens=24),
    ),
    "three_samples": Run(
        "Three samples share a prompt, then copy",
        EngineConfig(block_size=4, num_blocks=48, max_model_len=96),
        ("Once upon a time, a small brave robot",),
        SamplingParams(temperature=0.8, max_tokens=20, n=3, seed=7),
    ),
    "beams": Run(
        "Beam search with four beams",
        EngineConfig(block_size=2, num_blocks=64, max_model_len=96),
        ("At dawn the ship",),
        SamplingParams(beam_width=4, n=1, max_tokens=12),
    ),
    "short_of_blocks": Run(
        "Three requests, too few blocks",
        EngineConfig(block_size=4, num_blocks=16, max_model_len=48, max_num_seqs=4, enable_prefix_caching=False),
        ("Three primary colours are", "My favourite fruit is", "The sea is deep and"),
        SamplingParams(temperature=0.0, max_tokens=20, ignore_eos=True),
    ),
}


def record(run: Run) -> Trace:
    """Run it on the embedded model and return its trace, labelled. Raises ModelLoadError."""
    from engine.engine import Engine  # here, because pages that only show recordings need no torch

    engine = Engine(run.config)
    engine.generate(run.prompts, run.params)
    today = datetime.date.today().isoformat()
    engine.trace.info.update(source="recording", recorded=today, title=run.title)
    return engine.trace


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m engine.recorder", description=__doc__)
    parser.add_argument("folder", type=Path, nargs="?", default=FOLDER, help=f"where to (default: {FOLDER.name})")
    folder: Path = parser.parse_args(arguments).folder
    folder.mkdir(parents=True, exist_ok=True)
    for name, run in RUNS.items():
        text = record(run).to_json()
        (folder / f"{name}.json").write_text(text, "utf-8")
        print(f"{name}: {run.title}, {len(text) / 1e3:.0f} kB")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
