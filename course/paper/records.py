"""Every record, in the paper's order."""

from __future__ import annotations

from course.paper import batched, block_sizes, capacity, prefixes, sharing, waste
from course.paper.record import Record

RECORDS: tuple[Record, ...] = tuple(
    record for module in (capacity, waste, batched, sharing, prefixes, block_sizes) for record in module.RECORDS
)
