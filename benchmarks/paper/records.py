"""Every record, in the paper's order."""

from __future__ import annotations

from benchmarks.paper import batched, capacity, kernels, prefixes, sharing, waste
from benchmarks.paper.record import Record

RECORDS: tuple[Record, ...] = tuple(
    record for module in (capacity, waste, batched, sharing, prefixes, kernels) for record in module.RECORDS
)
