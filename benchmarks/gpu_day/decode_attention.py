"""Decode attention: what it reads a second beside what a copy moves, and paged beside contiguous keys and values."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.attention import Case
from benchmarks.bandwidth import copy_bandwidth
from benchmarks.gpu_day.attention_race import milliseconds, our_backend, race_with_flex
from benchmarks.gpu_day.context import Context
from benchmarks.gpu_day.findings import Finding, Measured, Remark, Target

OF_COPY_BANDWIDTH = 0.85
BESIDE_CONTIGUOUS = 1.05


def run(context: Context) -> Iterator[Finding]:
    """The first case, 32 sequences of 2,048 tokens on a card, is held against the targets."""
    sizes = context.sizes
    ours = our_backend(context)
    bandwidth = copy_bandwidth(context.device)
    yield Measured({"copied GB/s, read and written": bandwidth / 1e9})
    for number, (batch, length) in enumerate(sizes.decode_attention):
        case = Case(batch, length, 16, context.dtype, "decode", sizes.heads, sizes.head_dim)
        times, flex_problem = race_with_flex(case, context)
        share = case.bytes_read() / times[ours] / bandwidth
        over = times[ours] / times["contiguous SDPA"]
        yield Measured({
            "batch": batch, "context": length, "dtype": case.dtype, **milliseconds(times),
            "of copy bandwidth": share, "paged:contiguous": over,
        })  # fmt: skip
        if flex_problem:
            yield Remark(flex_problem)
        if number == 0:
            on_card = context.on_card
            at = f"at {batch} x {length:,}"
            yield Target(f"read a second, of a copy, {at}", share, OF_COPY_BANDWIDTH, at_least=True, on_card=on_card)
            yield Target(f"paged over contiguous {at}", over, BESIDE_CONTIGUOUS, at_least=False, on_card=on_card)
