"""A small search over the tiles of the Triton attention kernels; prints the entry to paste into triton_config.py."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, astuple
from importlib.util import find_spec
from itertools import product

import torch

from benchmarks.attention import Case, line_up
from benchmarks.gpu_day.attention_race import race_in
from benchmarks.gpu_day.context import Context
from benchmarks.gpu_day.findings import Finding, Measured, NotHereError, Remark
from kernels.paged_attention.triton_config import DECODE, PREFILL, Table, Tiles, architecture_of, next_power_of_two

BACKEND = "triton"
SECONDS_A_CANDIDATE = 3.0
"""Compiling included. The search ends while there is still time to say what it found."""


def run(context: Context) -> Iterator[Finding]:
    if find_spec("triton") is None:
        raise NotHereError("the triton package is not installed")
    if not context.on_card and os.environ.get("TRITON_INTERPRET") != "1":
        raise NotHereError("Triton's kernels run on a CPU under its interpreter only, whose times say nothing")
    sizes = context.sizes
    until = context.seconds_left() / 2
    for phase, tables, (batch, length) in (
        ("decode", DECODE, sizes.decode_attention[0]),
        ("prefill", PREFILL, sizes.prefill_attention[0]),
    ):
        case = Case(batch, length, 16, context.dtype, phase, sizes.heads, sizes.head_dim)
        yield from search(case, tables, context, until)
        until = 0.0


def search(case: Case, tables: dict[str, Table], context: Context, until: float) -> Iterator[Finding]:
    """Every candidate in turn, until so many seconds are left; the fastest one as a line of the table.

    Raises AssertionError when none runs.
    """
    architecture = architecture_of(context.device)
    dtype: torch.dtype = getattr(torch, case.dtype)
    entry = (dtype.itemsize, max(64, next_power_of_two(case.head_dim)))
    today = tables[architecture][entry]
    found: dict[Tiles, float] = {}
    problem = ""
    candidates = neighbours(today, tiny=context.sizes.is_tiny)
    for number, tiles in enumerate(candidates):
        if context.seconds_left() - until < SECONDS_A_CANDIDATE:
            yield Remark(f"{len(candidates) - number} of {len(candidates)} {case.phase} candidates were left out.")
            break
        with entry_replaced(tables[architecture], entry, tiles):
            try:
                contestants = line_up(case, context.device, flex=False, backends=[BACKEND])
                times = race_in(context, {BACKEND: contestants[BACKEND]}, case)
            except Exception as error:  # too much shared memory, say: the others may fit
                problem = f"{type(error).__name__}: {(str(error).splitlines() or [''])[0]}"
                yield Measured({"phase": case.phase, **asdict(tiles), "does not run": problem})
                continue
        found[tiles] = times[BACKEND]
        yield Measured({"phase": case.phase, **asdict(tiles), "us": 1e6 * times[BACKEND]})
    if not found and problem:
        raise AssertionError(f"no candidate for {case.phase} runs, the last one for: {problem}")
    if found:
        best = min(found, key=found.__getitem__)
        gain = (
            f"{found[today] / found[best]:.2f} times as fast as today's" if today in found else "today's does not run"
        )
        kept = "today's entry is the fastest" if best == today else gain
        yield Remark(f'{case.phase}: "{architecture}": {{{entry}: {best}}}  # {kept}')


def neighbours(today: Tiles, *, tiny: bool) -> list[Tiles]:
    """Today's entry first, then others by how far they are from it; rows only grow or shrink by a factor of two."""
    rows = sorted({today.rows, max(16, today.rows // 2)} | ({2 * today.rows} if today.rows < 128 else set()))
    keys = sorted({max(16, today.keys // 2), today.keys, 2 * today.keys})
    warps, stages = [4, 8], [1, 2, 3, 4]
    if tiny:
        rows, keys, warps, stages = [today.rows], [today.keys, today.keys // 2], [today.num_warps], [today.num_stages]
    others = [Tiles(*cut) for cut in product(rows, keys, warps, stages)]
    return sorted({today, *others}, key=lambda tiles: (_distance(tiles, today), str(tiles)))


def _distance(a: Tiles, b: Tiles) -> int:
    return sum(x != y for x, y in zip(astuple(a), astuple(b), strict=True))


@contextmanager
def entry_replaced(table: Table, entry: tuple[int, int], tiles: Tiles) -> Iterator[None]:
    before = table[entry]
    table[entry] = tiles
    try:
        yield
    finally:
        table[entry] = before
