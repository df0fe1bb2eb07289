"""How a decode step grows: with context, with batch, with the size of the pool; and what a request holds.

Usage: python -m benchmarks.scaling [--json] [--batch 1 4 16] [--context 100 400 1000] [--pool 1 4 16] [--dtype auto]
           [--block-size 16] [--rounds 3] [--steps 20]

A figure is the median step of all rounds, in which the rows take turns. `beside the first` is over the first context
of the same batch and pool. `pool` is how many times the blocks that the batch needs at most: the free ones should cost
nothing. `KV floor ms` is how long this machine takes to read as many bytes as attention must, as fast as it reads at
all (measured in the same run). `KB a request` are the keys and values it holds, its last block included, `KB used`
those it has written.
"""

from __future__ import annotations

import argparse
import random
import statistics
import sys
import time
from dataclasses import dataclass
from itertools import product

import torch

from benchmarks.bandwidth import read_bandwidth
from benchmarks.tables import Row, progress, show
from engine import Engine, EngineConfig, SamplingParams
from engine.components import build_components
from engine.model.weights.load import LoadedModel, load_model
from engine.trace.usage import usage_of


@dataclass(frozen=True)
class Case:
    batch: int
    context: int
    pool: int


def main() -> None:
    options = parse_options()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    loaded = load_model(options.model, dtype=options.dtype, device=torch.device(device))
    cases = [Case(*sizes) for sizes in product(options.batch, options.context, options.pool)]
    seconds: dict[Case, list[float]] = {case: [] for case in cases}
    held: dict[Case, tuple[float, float]] = {}
    for number in range(options.rounds):
        for case in cases:
            progress(f"round {number + 1} of {options.rounds}: {case}")
            engine = decoding_engine(loaded, "auto", case, options.block_size, options.steps + 3)
            seconds[case] += seconds_of_steps(engine, options.steps)
            held[case] = memory_of_a_request(engine)
    bandwidth = read_bandwidth(torch.device(device))
    rows = [row_of(case, seconds, held[case], bandwidth) for case in cases]
    show(
        rows, as_json=options.json, command=f"python -m benchmarks.scaling {' '.join(sys.argv[1:])}",
        notes=[f"{loaded.name} in {loaded.dtype} on {device}, blocks of {options.block_size}"],
    )  # fmt: skip


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--batch", nargs="+", type=int, default=[1, 4, 16])
    parser.add_argument("--context", nargs="+", type=int, default=[100, 400, 1000])
    parser.add_argument("--pool", nargs="+", type=int, default=[1, 4])
    parser.add_argument("--dtype", default="auto")
    parser.add_argument("--model", default="smollm2-135m-instruct")
    parser.add_argument("--block-size", type=int, default=16)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=20)
    return parser.parse_args()


def decoding_engine(
    loaded: LoadedModel, backend: str, case: Case, block_size: int, num_tokens: int, *, enforce_eager: bool = False
) -> Engine:
    """An engine whose sequences have read random prompts of `context` tokens and can decode `num_tokens` more."""
    length = case.context + num_tokens
    config = EngineConfig(
        attention_backend=backend,
        dtype=loaded.dtype,
        device=loaded.model.device.type,
        block_size=block_size,
        num_blocks=case.pool * case.batch * -(-length // block_size),
        max_num_seqs=case.batch,
        max_num_batched_tokens=case.batch * case.context,
        max_model_len=length,
        enforce_eager=enforce_eager,
    )
    engine = Engine(config, build_components(config, loaded))
    tokens = random.Random(0)
    for _ in range(case.batch):
        prompt = [tokens.randrange(loaded.config.vocab_size) for _ in range(case.context)]
        engine.add_request(prompt, SamplingParams(max_tokens=num_tokens, ignore_eos=True))
    engine.step()
    return engine


def seconds_of_steps(engine: Engine, steps: int) -> list[float]:
    """After one that warms up."""
    engine.step()
    seconds = []
    for _ in range(steps):
        started = time.perf_counter()
        engine.step()
        seconds.append(time.perf_counter() - started)
    return seconds


def memory_of_a_request(engine: Engine) -> tuple[float, float]:
    """Bytes of keys and values held, and written, by each of the running requests."""
    usage = usage_of(engine.snapshot())
    bytes_per_token = engine.trace.info["kv_bytes_per_token"]
    running = len(engine.scheduler.running)
    return usage.num_held_slots * bytes_per_token / running, usage.num_written_slots * bytes_per_token / running


def row_of(case: Case, seconds: dict[Case, list[float]], held: tuple[float, float], bandwidth: float) -> Row:
    median = statistics.median(seconds[case])
    first = next(c for c in seconds if (c.batch, c.pool) == (case.batch, case.pool))
    return {
        "batch": case.batch,
        "context": case.context,
        "pool": case.pool,
        "step ms": round(1e3 * median, 2),
        "beside the first": round(median / statistics.median(seconds[first]), 2),
        "KV floor ms": round(1e3 * case.batch * held[1] / bandwidth, 2),
        "KB a request": round(held[0] / 1024, 1),
        "KB used": round(held[1] / 1024, 1),
    }


if __name__ == "__main__":
    main()
