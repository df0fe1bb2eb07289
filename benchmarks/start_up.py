"""From nothing to the first token: each part in seconds, in a new process every time, with the weights cached.

Usage: python -m benchmarks.start_up [--json] [--dtype auto float32] [--backend auto] [--rounds 5]

process: until Python runs our first line. import: `engine` and torch. weights: read, unpacked, packed for this
processor. engine: memory for keys and values. first token: a prompt of 16 tokens and one new token, kernels loaded from
Numba's cache on disk included. A figure is the median of the rounds; one round before them, not counted, fills caches.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time

from benchmarks.tables import Row, progress, show

PARTS = ("process", "import", "weights", "engine", "first token")

PROGRAM = """
import json, sys, time
begun = time.time()
from engine import Engine, EngineConfig, SamplingParams
from engine.components import build_components
from engine.model.device import resolve_device
from engine.model.weights.load import load_model
times = [begun, time.time()]
config = EngineConfig(dtype=sys.argv[1], attention_backend=sys.argv[2])
loaded = load_model(config.model, dtype=config.dtype, device=resolve_device("auto"))
times.append(time.time())
engine = Engine(config, build_components(config, loaded))
times.append(time.time())
engine.generate([list(range(100, 116))], SamplingParams(max_tokens=1, ignore_eos=True))
times.append(time.time())
print(json.dumps([loaded.dtype, times]))
"""


def main() -> None:
    options = parse_options()
    rows: list[Row] = []
    for dtype in options.dtype:
        runs = []
        for number in range(options.rounds + 1):
            progress(f"{dtype}, round {number} of {options.rounds}")
            runs.append(start_once(dtype, options.backend))
        rows.append(row_of([seconds for _, seconds in runs[1:]], runs[0][0]))
    show(rows, as_json=options.json, command=f"python -m benchmarks.start_up {' '.join(sys.argv[1:])}")


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--dtype", nargs="+", default=["auto", "float32"])
    parser.add_argument("--backend", default="auto")
    parser.add_argument("--rounds", type=int, default=5)
    return parser.parse_args()


def start_once(dtype: str, backend: str) -> tuple[str, list[float]]:
    """The number type that ran, and the seconds of each part."""
    started = time.time()
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, dtype, backend], stdout=subprocess.PIPE, text=True, check=True
    )
    chosen, times = json.loads(done.stdout.splitlines()[-1])
    return chosen, [after - before for before, after in zip([started, *times], times, strict=False)]


def row_of(runs: list[list[float]], dtype: str) -> Row:
    """Medians of each part and of the whole."""
    columns = zip(PARTS, zip(*runs, strict=True), strict=True)
    parts = {f"{part} s": round(statistics.median(times), 2) for part, times in columns}
    return {"dtype": dtype, "rounds": len(runs), **parts, "whole s": round(statistics.median(map(sum, runs)), 2)}


if __name__ == "__main__":
    main()
