"""Tokens a second: this engine beside transformers `generate`, and beside vLLM and llama.cpp where they are installed.

Usage: python -m benchmarks.throughput [--json] [--batch 1 8 16 32] [--prompt 16 512] [--new-tokens 64] [--rounds 5]
           [--cells 1x16 16x900 ...] [--cell-seconds N] [--contestants cpu-int4 transformers-bfloat16 ...]
           [--peer vllm=PYTHON] [--peer llamacpp=PYTHON]

All run the same random prompts, greedily, and take turns within each round; the first round warms up and is not
counted, unless a long one leaves no time for more. A figure is the median of the rounds. `tokens/s` counts new tokens
over the whole time, prompt included; `first ms` is when every sequence has its first token; `decode tokens/s` is what
comes after. `beside X` is a contestant's decode speed over that of X, the first one named.
`--cells` lists pairs of batch and prompt in the place of every batch with every prompt. `--cell-seconds` stops a cell's
rounds early; the column `rounds` says how many were counted.
"""

from __future__ import annotations

import argparse
import random
import statistics
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass

import torch

from benchmarks.contestants import (
    Contestant,
    Job,
    Limits,
    OurEngine,
    Peer,
    TransformersGenerate,
    embedded,
    embedded_in_transformers,
)
from benchmarks.tables import Row, progress, show

ON_CPU = (
    "cpu-int4", "cpu-bfloat16", "cpu-float32", "reference-int4", "reference-bfloat16", "reference-float32",
    "transformers-float32", "transformers-bfloat16",
)  # fmt: skip
ON_GPU = ("triton-bfloat16", "triton-float32", "transformers-bfloat16", "transformers-float32")


TOKEN_IDS = range(1000, 40_000)
"""Plain text in the embedded model's vocabulary."""


@dataclass(frozen=True)
class Cell:
    batch: int
    prompt: int
    new_tokens: int


def main() -> None:
    options = parse_options()
    pairs = options.cells or [(batch, prompt) for prompt in options.prompt for batch in options.batch]
    cells = [Cell(batch, prompt, options.new_tokens) for batch, prompt in pairs]
    limits = Limits(max(cell.batch for cell in cells), max(cell.prompt for cell in cells) + options.new_tokens)
    contestants = line_up(options, limits)
    rows = [
        row for cell in cells for row in rows_of(cell, measure(cell, contestants, options.rounds, options.cell_seconds))
    ]
    notes = [f"{name}: {contestant.description}" for name, contestant in contestants.items()]
    for contestant in contestants.values():
        if isinstance(contestant, Peer):
            contestant.close()
    show(rows, as_json=options.json, command=f"python -m benchmarks.throughput {' '.join(sys.argv[1:])}", notes=notes)


def parse_options() -> argparse.Namespace:
    here = ON_GPU if torch.cuda.is_available() else ON_CPU
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--batch", nargs="+", type=int, default=[1, 8, 16, 32])
    parser.add_argument("--prompt", nargs="+", type=int, default=[16, 512], help="tokens of each prompt")
    parser.add_argument("--cells", nargs="+", type=pair_of, metavar="BATCHxPROMPT")
    parser.add_argument("--new-tokens", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--cell-seconds", type=float, default=float("inf"))
    parser.add_argument("--contestants", nargs="+", default=list(here), metavar="BACKEND-DTYPE", choices=here)
    parser.add_argument("--peer", action="append", default=[], metavar="NAME=PYTHON", type=peer_of)
    return parser.parse_args()


def pair_of(text: str) -> tuple[int, int]:
    batch, _, prompt = text.partition("x")
    return int(batch), int(prompt)


def peer_of(text: str) -> tuple[str, str]:
    name, _, python = text.partition("=")
    if name not in ("vllm", "llamacpp") or not python:
        raise argparse.ArgumentTypeError(f"{text!r} is not vllm=PYTHON or llamacpp=PYTHON")
    return name, python


def line_up(options: argparse.Namespace, limits: Limits) -> dict[str, Contestant]:
    """Every contestant, loaded and ready, by name."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    contestants: dict[str, Contestant] = {}
    for name in options.contestants:
        progress(f"loading {name}")
        backend, dtype = name.split("-")
        if backend == "transformers":
            contestants[name] = TransformersGenerate(embedded_in_transformers(dtype, device))
        else:
            contestants[name] = OurEngine(embedded(dtype, device), backend, limits)
    for name, python in options.peer:
        progress(f"loading {name} (minutes, when it compiles)")
        contestants[name] = Peer(name, python, limits)
    return contestants


def measure(
    cell: Cell, contestants: Mapping[str, Contestant], rounds: int, cell_seconds: float, token_ids: range = TOKEN_IDS
) -> dict[str, list[list[float]]]:
    """The times of every contestant in every round that counts; prompts are of `token_ids`."""
    measured: dict[str, list[list[float]]] = {name: [] for name in contestants}
    started = time.perf_counter()
    for number in range(rounds + 1):
        job = random_job(cell, number, token_ids)
        for name, contestant in contestants.items():
            progress(f"prompt {cell.prompt}, batch {cell.batch}, round {number} of {rounds}: {name}")
            measured[name].append(contestant.run(job))
        if time.perf_counter() - started > cell_seconds:
            break
    return {name: runs[1:] or runs for name, runs in measured.items()}


def random_job(cell: Cell, number: int, token_ids: range = TOKEN_IDS) -> Job:
    """Prompts that no round shares with another, so that no prefix cache helps anybody."""
    tokens = random.Random(f"{cell} {number}")
    return Job([[tokens.choice(token_ids) for _ in range(cell.prompt)] for _ in range(cell.batch)], cell.new_tokens)


def rows_of(cell: Cell, measured: dict[str, list[list[float]]]) -> list[Row]:
    decode = {name: statistics.median(decode_speed(cell, times) for times in runs) for name, runs in measured.items()}
    first = next(iter(measured))
    return [
        {
            "batch": cell.batch,
            "prompt": cell.prompt,
            "contestant": name,
            "rounds": len(runs),
            "tokens/s": round(statistics.median(cell.batch * cell.new_tokens / times[-1] for times in runs), 1),
            "first ms": round(1e3 * statistics.median(times[0] for times in runs), 1),
            "decode tokens/s": round(decode[name], 1),
            f"beside {first}": round(decode[name] / decode[first], 2),
        }
        for name, runs in measured.items()
    ]


def decode_speed(cell: Cell, times: list[float]) -> float:
    """Tokens a second of all sequences, after each has its first."""
    return cell.batch * (cell.new_tokens - 1) / (times[-1] - times[0])


if __name__ == "__main__":
    main()
