"""One small trace in the four memories, for who turns a knob and watches: how many requests run, step by step."""

from __future__ import annotations

from dataclasses import dataclass

from course.paper.serving import MEMORIES, memory_of, normalized_latency
from course.paper.workloads import MIXES, draw_requests
from engine.i18n import N_

NUM_TOKENS = 12_000
"""Of a trace, on average: it runs within seconds."""
NUM_ROWS = 60


@dataclass(frozen=True, slots=True)
class OneTrace:
    """running: a row for each of some steps, with the requests that ran by memory; None once all are done.

    latency: steps a token by memory, the paper's normalized latency with steps as its clock.
    """

    running: list[dict[str, float | None]]
    latency: dict[str, float]


def one_trace(mix: str, family: str, rate: float, block_size: int, num_slots: int) -> OneTrace:
    """Requests arrive at `rate` a step; every step takes equally long."""
    lengths = MIXES[mix]
    requests = draw_requests(lengths, family, round(NUM_TOKENS / (lengths.mean_input + lengths.mean_output)), 0)
    counts: dict[str, list[int]] = {name: [] for name in MEMORIES}
    latency = {}
    for name in MEMORIES:
        memory = memory_of(name, num_slots, block_size)

        def note(num_seqs: int, seen: list[int] = counts[name]) -> None:
            seen.append(num_seqs)

        latency[name] = normalized_latency(memory, requests, rate, lambda _step: 1.0, note=note)
    longest = max(map(len, counts.values()))
    rows = []
    for step in range(0, longest, max(1, longest // NUM_ROWS)):
        row: dict[str, float | None] = {N_("step"): float(step)}
        row |= {name: float(each[step]) if step < len(each) else None for name, each in counts.items()}
        rows.append(row)
    return OneTrace(rows, latency)
