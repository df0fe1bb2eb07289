"""A small soak: the connector follows a flood, keeps its memory, loses nothing, and a look stays short."""

from __future__ import annotations

import statistics

import pytest

from benchmarks.remote_soak import EVENTS_A_MESSAGE, soak

NUM_EVENTS = 24_000


@pytest.mark.slow
def test_a_high_event_rate_keeps_memory_flat_and_reads_fast():
    found = soak(NUM_EVENTS, rate=10_000)
    assert (found.num_messages, found.is_partial) == (NUM_EVENTS // EVENTS_A_MESSAGE, False)
    assert found.resident_mb[-1] - found.resident_mb[4] < 15
    assert statistics.median(found.look_cpu_ms) < 200
