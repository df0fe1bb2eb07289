"""python -m tests.fuzz --inputs 50000 [--target NAME]: bad input at every door, and a table of what was tried."""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Sequence
from datetime import timedelta

from hypothesis import HealthCheck, Phase, given, settings

from tests.fuzz.targets import TARGETS, Target

LONGEST = timedelta(seconds=30)
"""An input that takes longer counts as a hang."""


def fuzz(target: Target, num_inputs: int) -> int:
    """Try that many inputs and return how many. Raises what a bad one raised, the input made as small as can be."""
    tried = 0

    @settings(
        max_examples=num_inputs, deadline=LONGEST, database=None, suppress_health_check=list(HealthCheck),
        phases=(Phase.generate, Phase.shrink),
    )  # fmt: skip
    @given(target.inputs)
    def try_one(value: object) -> None:
        nonlocal tried
        tried += 1
        target.try_it(value)

    try_one()
    return tried


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--inputs", type=int, default=50_000, help="in all (default: 50000)")
    parser.add_argument("--target", choices=[target.name for target in TARGETS], action="append")
    options = parser.parse_args(arguments)
    chosen = [target for target in TARGETS if not options.target or target.name in options.target]
    shares = sum(target.share for target in chosen)
    total = 0
    for target in chosen:
        started = time.perf_counter()
        tried = fuzz(target, math.ceil(options.inputs * target.share / shares))
        total += tried
        seconds = time.perf_counter() - started
        print(f"{target.name:20} {tried:7} inputs, {seconds:6.1f} s, no crash, no hang", flush=True)
    print(f"{'all':20} {total:7} inputs")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
