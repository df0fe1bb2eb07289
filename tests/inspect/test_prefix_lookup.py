"""The prefix cache told from the trace: the same blocks, hashes and hits as the engine's own."""

from __future__ import annotations

from dataclasses import replace

import pytest

from engine import Engine, EngineConfig, SamplingParams
from engine.inspect.prefix_lookup import BlockLookup, cached_blocks, lookups_of, next_evicted, prefix_queries
from engine.kv_cache.prefix_cache import hash_block_tokens

CONFIG = EngineConfig(model="tiny-random", block_size=4, num_blocks=8)


def run(engine: Engine, prompt: str, max_tokens: int = 1) -> None:
    engine.add_request(prompt, SamplingParams(max_tokens=max_tokens, ignore_eos=True, temperature=0.0))
    while engine.has_unfinished_requests():
        engine.step()


@pytest.fixture
def engine() -> Engine:
    return Engine(CONFIG)


def outcomes(engine: Engine) -> list[tuple[str, int | None]]:
    """Of the last query."""
    found = lookups_of(engine.trace, prefix_queries(engine.trace)[-1])
    assert [lookup.logical_index for lookup in found] == list(range(len(found)))
    return [(lookup.outcome, lookup.block_id) for lookup in found]


def test_a_hash_follows_from_the_parents_hash_and_the_tokens(engine: Engine) -> None:
    run(engine, "abcdefghij")
    token_ids = engine.tokenizer.encode("abcdefgh")
    first = hash_block_tokens(None, tuple(token_ids[:4]))
    second = hash_block_tokens(first, tuple(token_ids[4:]))
    found = cached_blocks(engine.snapshot())
    assert [(block.block_id, block.parent_block_hash, block.block_hash) for block in found] == [
        (0, None, first), (1, first, second),
    ]  # fmt: skip
    assert [block.pieces for block in found] == [tuple("abcd"), tuple("efgh")]


def test_the_free_queue_says_what_is_evicted_next(engine: Engine) -> None:
    assert next_evicted(engine.snapshot()) is None
    run(engine, "abcdefghij")
    state = engine.snapshot()
    assert list(state.free_block_queue) == [2, 3, 4, 5, 6, 7, 1, 0]
    assert next_evicted(state) == 1
    cached = [(block.block_id, block.ref_cnt, block.queue_index) for block in cached_blocks(state)]
    assert cached == [(0, 0, 7), (1, 0, 6)]
    run(engine, "z" * 26)  # takes 7 blocks, block 1 among them
    evicted = cached_blocks(engine.snapshot())
    assert all(block.pieces == tuple("zzzz") for block in evicted if block.block_id == 1)


def test_each_block_of_a_request_is_a_hit_a_miss_or_not_looked_up(engine: Engine) -> None:
    run(engine, "abcdefghijkl")
    assert outcomes(engine) == [("miss", None), ("after a miss", None), ("after a miss", None)]
    run(engine, "abcdefghXYZW12")
    assert outcomes(engine) == [("hit", 0), ("hit", 1), ("miss", None), ("not full", None)]
    run(engine, "abcdefgh")
    assert outcomes(engine) == [("hit", 0), ("last token", None)]
    run(engine, "XXXXefgh1")
    assert outcomes(engine) == [("miss", None), ("after a miss", None), ("not full", None)]
    run(engine, "efgh1")
    assert outcomes(engine)[0] == ("miss", 1)  # the same tokens are cached, behind other ones


def test_a_lookup_carries_the_tokens_of_its_block(engine: Engine) -> None:
    run(engine, "abcdef")
    [query] = prefix_queries(engine.trace)
    assert lookups_of(engine.trace, query) == [
        BlockLookup(0, tuple("abcd"), "miss", None), BlockLookup(1, tuple("ef"), "not full", None),
    ]  # fmt: skip


def test_without_prefix_caching_nothing_is_looked_up() -> None:
    engine = Engine(replace(CONFIG, enable_prefix_caching=False))
    run(engine, "abcdefgh")
    assert (prefix_queries(engine.trace), cached_blocks(engine.snapshot())) == ([], [])
