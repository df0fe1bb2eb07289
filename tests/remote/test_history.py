"""What was seen, within bounds: any moment is the fold of all before it, and old moments go."""

from __future__ import annotations

import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine import Engine, EngineConfig, SamplingParams
from engine.remote import history as history_module
from engine.remote.history import History
from engine.remote.report import rates
from engine.trace import cache_view
from engine.trace.cache_view import CacheView
from engine.trace.per_second import SecondStats
from engine.trace.state import CacheState
from engine.trace.trace import Trace
from tests.helpers.kv_stream import CLEARED, one_block, payload, removed, stored

MESSAGES = st.lists(
    st.one_of(
        st.integers(0, 9).map(lambda n: stored([n], n - 1 if n else None, [n, n], 2)),
        st.integers(0, 9).map(removed),
        st.just(CLEARED),
    ),
    max_size=40,
)


def filled(count: int, **limits: int) -> History:
    history = History(**limits)
    for number in range(count):
        history.add_message(number, one_block(number))
    return history


@settings(max_examples=60)
@given(events=MESSAGES)
def test_every_state_is_the_fold_of_the_events_before(events):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(history_module, "SHORTEST_CHUNK", 3)
        history, state = History(), CacheState()
        moments = [state.copy().prefix_cache]
        for number, event in enumerate(events):
            history.add_message(number, payload(event))
            for published in history.events_of(number + 1):
                state.apply(published)
            moments.append(state.copy().prefix_cache)
    assert [history.at(step).prefix_cache for step in range(len(events) + 1)] == moments
    again = Trace.from_json(history.trace().to_json())
    assert [again.at(step).prefix_cache for step in range(1, len(events) + 1)] == moments[1:]


def test_the_multiset_counts_copies():
    history = History()
    for event in (stored([1], None, [5], 1), stored([1], None, [5], 1), removed(1)):
        history.add_message(history.last_step, payload(event))
    assert [history.at(s).prefix_cache.num_copies for s in (1, 2, 3)] == [1, 2, 1]
    assert history.at(3).prefix_cache.num_blocks == 1


def test_copies_in_different_stores_are_removed_apart():
    history = History()
    block = [1], None, [5], 1
    history.add_message(0, payload(stored(*block, medium="GPU"), stored(*block, medium="CPU")))
    history.add_message(1, payload(removed(1, medium="GPU")))
    assert history.at(2).prefix_cache.of(0).blocks[1].places == (("CPU", None),)
    history.add_message(2, payload(removed(1, medium="GPU")))
    assert history.at(3).prefix_cache.of(0).num_unknown_removed == 1
    history.add_message(3, payload(removed(1)))
    assert history.at(4).prefix_cache.num_blocks == 0


def test_ranks_are_kept_apart():
    history = History()
    history.add_message(0, payload(stored([1], None, [5], 1), rank=0))
    history.add_message(0, payload(stored([1], None, [5], 1), rank=1))
    history.add_message(1, payload(CLEARED, rank=0))
    assert {rank: view.num_copies for rank, view in history.at(3).prefix_cache.ranks.items()} == {0: 0, 1: 1}


def test_a_feed_names_the_rank_of_a_server_that_does_not():
    history = History()
    history.add_message(0, one_block(3), 2)
    assert list(history.at(1).prefix_cache.ranks) == [2]


def test_the_oldest_states_are_dropped(monkeypatch):
    monkeypatch.setattr(history_module, "SHORTEST_CHUNK", 10)
    history = History(max_events=100)
    for number in range(1000):
        history.add_message(number, payload(stored([number], None, [1], 1), removed(number)))
    assert history.last_step == 1000
    assert 950 <= history.first_step < 1000
    assert history.at(history.first_step).prefix_cache.num_blocks == 0
    with pytest.raises(IndexError, match=r"is not among"):
        history.at(history.first_step - 1)


def test_an_export_begins_with_a_snapshot(monkeypatch):
    monkeypatch.setattr(history_module, "SHORTEST_CHUNK", 10)
    history = filled(200, max_events=300)
    history.add_gap(200, 204)
    first = history.first_step
    assert first > 0
    trace = Trace.from_json(history.trace({"source": "server"}).to_json())
    assert trace.info == {"source": "server"}
    assert trace.num_steps == history.last_step - first
    for step in (first, first + 1, 150, 200, 201):
        assert list(trace.at(step - first).prefix_cache.of(0).blocks) == list(
            history.at(step).prefix_cache.of(0).blocks
        )
    assert trace.at(trace.num_steps).prefix_cache.partial_since == trace.num_steps


def test_a_gap_makes_the_view_partial_until_it_is_emptied():
    history = History()
    history.add_gap(0, 4)
    history.add_message(5, one_block(5))
    assert history.at(2).prefix_cache.partial_since == 1
    history.add_message(6, payload(CLEARED))
    assert history.at(3).prefix_cache.partial_since is None


def test_a_restart_empties_one_rank():
    history = History()
    history.add_message(0, one_block(1), 0)
    history.add_message(0, one_block(1), 1)
    history.add_restart(1)
    assert {rank: view.num_copies for rank, view in history.at(3).prefix_cache.ranks.items()} == {0: 1, 1: 0}


def test_blocks_that_are_never_removed_are_dropped_at_the_limit(monkeypatch):
    monkeypatch.setattr(cache_view, "MAX_BLOCKS", 50)
    view = filled(70).at(70).prefix_cache.of(0)
    assert (list(view.blocks), view.num_forgotten, view.num_copies) == (list(range(20, 70)), 20, 50)


def test_tokens_are_bounded_too(monkeypatch):
    monkeypatch.setattr(cache_view, "MAX_TOKENS", 31)
    view: CacheView = filled(70).at(70).prefix_cache
    assert (view.num_tokens, view.num_blocks) == (30, 15)


@pytest.mark.parametrize(
    ("quiet", "expected"), [(0.0, (0.6, 0.2)), (5.9, (0.3, 0.1)), (9.0, (0.0, 0.1)), (10.0, (0.0, 0.0))]
)
def test_rates_look_back_ten_seconds_from_now(quiet, expected):
    flow = [SecondStats(100, 2, 0, 2), SecondStats(101, 1, 0, 3), SecondStats(104, 0, 1, 2)]
    assert rates(flow, quiet) == expected
    assert rates([], quiet) == (None, None)


def test_the_engines_trace_folds_to_its_cached_blocks():
    config = EngineConfig(model="tiny-random", block_size=4, num_blocks=14, attention_backend="reference")
    engine = Engine(config)
    for start in range(6):
        engine.generate([f"prompt {start % 4} of these", "prompt"], SamplingParams(max_tokens=6, ignore_eos=True, n=2))
        cached = engine.kv.pool._cached_blocks
        view = engine.snapshot().prefix_cache.of(0)
        assert {h: block.num_copies for h, block in view.blocks.items()} == {h: len(c) for h, c in cached.items()}
    assert view.num_removed > 0
    engine.clear_prefix_cache()
    assert engine.snapshot().prefix_cache.num_blocks == 0


def test_memory_is_flat_on_an_endless_stream():
    """Four thousand messages more on top of a full history take no more room."""
    history = History(max_events=2_000, max_tokens=20_000)

    def run(first: int, last: int) -> None:
        for number in range(first, last):
            new = stored([number], number - 1, [number % 97] * 4, 4)
            history.add_message(number, payload(new, removed(number - 200)))

    run(0, 2_000)
    tracemalloc.start()
    run(2_000, 3_000)
    before = tracemalloc.get_traced_memory()[0]
    run(3_000, 7_000)
    after = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert history.at(history.last_step).prefix_cache.num_blocks == 200
    assert after - before < 300_000
