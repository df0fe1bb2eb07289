"""The curve counts what the engine counts: its KV cache manager, and the whole engine with one request at a time."""

from __future__ import annotations

from pathlib import Path
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.traffic import hit_curve as module
from engine.traffic.__main__ import main
from engine.traffic.blocks import BlockTrace, block_trace
from engine.traffic.cache_replay import Counted, replay_one_at_a_time, replay_together
from engine.traffic.formats import Traffic, read_traffic
from engine.traffic.hit_curve import hit_curve, pool_sizes_for
from tests.traffic.test_formats import MOONCAKE, read


def traffic_of(requests: list[tuple[list[int], int]]) -> Traffic:
    traffic = Traffic("prompts")
    for tokens, num_output in requests:
        traffic.add(tokens, len(tokens), num_output)
    return traffic


def random_traffic(seed: int, num_requests: int) -> Traffic:
    """Prompts that begin like one of a few, so that much is found and prompts often come again whole."""
    random = Random(seed)
    begins = [[random.randrange(3) for _token in range(random.randrange(1, 12))] for _begin in range(4)]
    return traffic_of(
        [
            (
                random.choice(begins) + [random.randrange(2) for _token in range(random.randrange(6))],
                random.randrange(1, 7),
            )
            for _request in range(num_requests)
        ]
    )


PROMPTS = st.lists(
    st.tuples(st.lists(st.integers(0, 1), min_size=1, max_size=9), st.integers(1, 5)), min_size=1, max_size=10
)


@given(PROMPTS, st.sampled_from([1, 2, 4]), st.integers(0, 12))
def test_hits_and_evictions_are_the_engines(requests: list, block_size: int, spare: int) -> None:
    traffic = traffic_of(requests)
    trace = block_trace(traffic, block_size)
    size = trace.largest + spare
    [result] = hit_curve(trace, [size])
    alone = replay_one_at_a_time(traffic, block_size, size)
    assert (result.hit_blocks, result.num_evicted, result.num_refused) == (alone.hit_blocks, alone.num_evicted, 0)


@pytest.mark.parametrize("seed", range(8))
def test_the_whole_engine_with_one_request_at_a_time_counts_the_same(seed: int) -> None:
    traffic = random_traffic(seed, 30)
    trace = block_trace(traffic, 2)
    for result in hit_curve(trace, pool_sizes_for(trace, 4)):
        engine = replay_together(traffic, 2, result.num_blocks, max_num_seqs=1)
        assert engine == Counted(result.hit_blocks, result.num_evicted)


def test_at_once_less_is_found_in_a_small_pool() -> None:
    """A request that begins with its twin finds nothing of it yet."""
    traffic = traffic_of([([1, 2, 3, 4, 5], 3)] * 4)
    assert replay_one_at_a_time(traffic, 2, 12) == Counted(6, 0)
    assert replay_together(traffic, 2, 12, max_num_seqs=4).hit_blocks < 6


def test_hash_ids_through_the_cache_manager() -> None:
    traffic = read(MOONCAKE)
    trace = block_trace(traffic, 512)
    for result in hit_curve(trace, pool_sizes_for(trace)):
        assert replay_one_at_a_time(traffic, 512, result.num_blocks) == Counted(result.hit_blocks, result.num_evicted)


def test_a_second_copy_of_a_last_block_takes_a_place() -> None:
    """The same two blocks three times: the second one is computed each time, and its copies stay cached."""
    traffic = traffic_of([([1, 2, 3, 4], 1)] * 3)
    trace = block_trace(traffic, 2)
    assert [result.hit_blocks for result in hit_curve(trace, [2, 3, 4])] == [2, 2, 2]
    assert [result.num_evicted for result in hit_curve(trace, [2, 3, 4])] == [2, 1, 0]


def test_a_pool_that_is_too_small_refuses() -> None:
    trace = block_trace(traffic_of([([1] * 8, 1), ([1], 1)]), 2)
    [result] = hit_curve(trace, [2])
    assert (result.num_refused, result.hit_blocks) == (1, 0)


def test_sizes_go_from_the_largest_request_to_where_nothing_is_evicted() -> None:
    trace = block_trace(random_traffic(3, 40), 2)
    sizes = pool_sizes_for(trace)
    results = hit_curve(trace, sizes)
    assert sizes == sorted(set(sizes)) and sizes[0] == trace.largest
    assert results[-1].num_evicted == 0


def long_trace(num_requests: int, mean_blocks: int, seed: int = 0) -> BlockTrace:
    """Conversations of which each row has some first blocks: `num_requests` rows of `mean_blocks` on average."""
    random = np.random.default_rng(seed)
    lengths = random.geometric(1 / mean_blocks, num_requests).astype(np.int64)
    ends = np.cumsum(lengths)
    conversations = random.integers(0, num_requests // 4 + 1, num_requests)
    begins = np.repeat(conversations * 4096, lengths)
    places = np.arange(ends[-1]) - np.repeat(ends - lengths, lengths)
    _distinct, contents = np.unique(begins + places, return_inverse=True)
    tokens = int(ends[-1]) * 512
    return BlockTrace(512, contents, ends, lengths, lengths, lengths + 1, int(contents.max()) + 1, tokens)


@pytest.mark.slow
def test_compiled_and_plain_count_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    trace = long_trace(2_000, 10)
    sizes = [trace.largest, 2_000, 20_000]
    plain = hit_curve(trace, sizes)
    monkeypatch.setattr(module, "COMPILE_FROM", 0)
    assert hit_curve(trace, sizes) == plain
    assert plain[0].hit_blocks < plain[1].hit_blocks < plain[2].hit_blocks


def test_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "trace.jsonl"
    file.write_text(f"{MOONCAKE}oops\n", "utf-8")
    assert main([str(file), "--pool", "4", "--pool", "8"]) == 0
    out, error = capsys.readouterr()
    assert error == "line 5: it is not JSON; skipped\n"
    assert out.splitlines() == [
        "4 requests, 4,812 prompt tokens, blocks of 512",
        "3 requests begin with the same 1,024 tokens",
        "      blocks       hit tokens  hit rate    evictions   refused",
        "           4            2,048    42.56%            1         0",
        "           8            2,048    42.56%            0         0",
    ]
    assert main([str(tmp_path / "none.jsonl")]) == 1
    file.write_text("oops\n", "utf-8")
    assert main([str(file)]) == 1
    assert "no request that can be used" in capsys.readouterr().err


def test_a_plain_text_is_read_line_by_line() -> None:
    assert len(read_traffic(iter(MOONCAKE.splitlines(keepends=True)), str.encode)) == 4
