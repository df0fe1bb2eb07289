"""Stream and metrics by seconds, on one axis."""

from __future__ import annotations

from dataclasses import astuple

import pytest

from engine.remote.metrics import MetricsSample
from engine.remote.server_clock import ServerClock
from engine.remote.timeline import TimelineSecond, timeline_of
from engine.trace.per_second import SecondStats

FLOW = (SecondStats(100, 2, 0, 2), SecondStats(103, 1, 0, 3), SecondStats(105, 0, 1, 2))


def sample(time: float, queries: float, hits: float, preempted: float = 0, usage: float = 0.5) -> MetricsSample:
    return MetricsSample(time, prefix_queries=queries, prefix_hits=hits, num_preemptions=preempted, kv_usage=usage)


def blocks(seconds: list[TimelineSecond]) -> list[tuple[object, ...]]:
    return [astuple(s)[:4] for s in seconds]


def rates(seconds: list[TimelineSecond]) -> list[float | None]:
    return [s.hit_rate for s in seconds]


def test_seconds_without_a_message_store_and_evict_nothing():
    whole = [(100, 2, 2, 0), (101, 2, 0, 0), (102, 2, 0, 0), (103, 3, 1, 0), (104, 3, 0, 0), (105, 2, 0, 1)]
    assert blocks(timeline_of(FLOW, ())) == whole
    assert blocks(timeline_of(FLOW, (), last=4)) == whole[2:]
    assert timeline_of((), ()) == []
    assert {(s.hit_rate, s.kv_usage, s.num_preempted) for s in timeline_of(FLOW, ())} == {(None, None, None)}


def test_before_the_first_message_blocks_are_unknown_and_metrics_are_not():
    seconds = timeline_of(FLOW, [sample(98.2, 0, 0, usage=0.25)])
    assert blocks(seconds)[:3] == [(98, None, None, None), (99, None, None, None), (100, 2, 2, 0)]
    assert [s.kv_usage for s in seconds[:3]] == [0.25, None, None]


def test_the_hit_rate_is_that_of_the_last_ten_seconds():
    looks = [sample(100.5, 1_000, 900), sample(101.5, 1_040, 900), sample(102.5, 1_060, 920), sample(112.5, 1_060, 920)]
    seconds = timeline_of((), looks)
    assert rates(seconds)[:3] == [None, 0 / 40, 20 / 60]
    assert rates(seconds)[10:] == [20 / 60, 20 / 20, None]


def test_preemptions_are_those_since_the_look_before():
    looks = [sample(100.1, 0, 0, 5), sample(101.0, 0, 0, 5), sample(101.9, 0, 0, 7), sample(102.9, 0, 0, 8)]
    assert [s.num_preempted for s in timeline_of((), looks)] == [None, 2, 1]


def test_a_counter_that_began_again_says_nothing_of_that_second():
    seconds = timeline_of((), [sample(100, 500, 400, 9), sample(101, 10, 10, 0), sample(102, 30, 15, 1)])
    assert (rates(seconds), [s.num_preempted for s in seconds]) == ([None, None, 5 / 20], [None, None, 1])


def test_a_gauge_counts_where_there_are_no_counters():
    assert rates(timeline_of((), [MetricsSample(100.0, hit_rate=0.75), MetricsSample(101.0, hit_rate=0.5)])) == [
        0.75,
        0.5,
    ]


@pytest.mark.parametrize("offset", [0.0, 3_600.25, -20.0])
def test_samples_are_placed_by_the_servers_clock(offset):
    clock = ServerClock()
    assert clock.from_ours(7.0) == 7.0
    for sent, late in ((100.0, 0.5), (101.0, 0.0), (102.0, 40.0)):  # the last one came again from the replay socket
        clock.note_message(sent, sent + late + offset)
    seconds = timeline_of(FLOW, [sample(103.5 + offset, 0, 0, usage=0.125)], clock.from_ours)
    assert [s.kv_usage for s in seconds] == [None, None, None, 0.125, None, None]
