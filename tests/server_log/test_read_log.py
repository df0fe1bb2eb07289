"""Reading a log: what is left alone, several starts in one log, limits, and text that only looks like a log."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.server_log import start as start_module
from engine.server_log.explain import explain, notes_on
from engine.server_log.shapes import KINDS, readings_of
from engine.server_log.start import read_log
from tests.server_log.test_fragments import FRAGMENTS, text_of
from views.serving.log_examples import EXAMPLES

LEFT_ALONE = (
    "INFO 05-22 02:20:59 engine.py:524] Received request 1: prompt: 'GPU KV cache size: 12 tokens', max_tokens=5",
    '{"prompt": "Available KV cache memory: 1.5 GiB"}',
    'INFO:     10.0.0.1:5000 - "POST /v1/chat/completions HTTP/1.1" 200 OK',
    "INFO 01-13 11:35:23 worker.py:241] Memory profiling takes 1.32 seconds",
    "Running: 4 reqs",
    "Traceback (most recent call last):",
    "vllm:num_requests_running",
    'http_requests_total{code="200"} 5',
    "vllm:num_requests_running{} NaN",
    "# TYPE vllm:num_preemptions_total counter",
    "KV cache is a good idea",
)


@pytest.mark.parametrize("line", LEFT_ALONE)
def test_a_line_that_is_not_about_memory_is_left_alone(line: str) -> None:
    assert readings_of(line) == []


def test_a_message_with_an_apostrophe_before_its_figures_is_known() -> None:
    line = (
        "ERROR The model's max seq len (4096) is larger than the maximum number of tokens that can be "
        "stored in KV cache (3664)."
    )
    [reading] = readings_of(line)
    assert reading.values == {"max_model_len": 4096, "num_tokens": 3664}


def test_every_kind_is_in_some_fragment() -> None:
    seen = {
        reading.kind
        for fragment in FRAGMENTS
        for line in read_log(text_of(fragment)).known
        for reading in line.readings
    }
    assert set(KINDS) - seen == {
        "max_model_len",
        "chunked_prefill",
        "no_memory",
        "out_of_memory",
        "sgl_weights_begin",
        "sgl_graphs",
    }


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("INFO [model.py:1582] Using max model len 16384", "up to 16,384 tokens"),
        ("Chunked prefill is enabled with max_num_batched_tokens=8192.", "at most 8,192 tokens"),
        ("ValueError: No available memory for the cache blocks. Try increasing ...", "not one block is left"),
        ("CUDA out of memory. Tried to allocate 2.50 GiB. GPU 0 has a total", "could not allocate 2.50 GiB more"),
        ("[TP0] Load weight begin. avail mem=137.29 GB", "137.3 GiB is free"),
        ("Capture cuda graph end. Time elapsed: 3.2 s. mem usage=1.34 GB. avail mem=7.05 GB.", "graphs take 1.34 GiB"),
    ],
)
def test_other_lines_of_a_start(line: str, words: str) -> None:
    log = read_log(line)
    [said] = explain(log.starts[0], log.lines[0])
    assert words in " ".join(said.sentences)


def test_the_next_start_begins_after_the_pool_of_the_one_before() -> None:
    log = read_log(EXAMPLES["It does not start"])
    assert [start.value("max_model_len") for start in log.starts] == [20_000, 29_000]
    assert [line.start for line in log.lines] == [0, 0, 0, 0, 1, 1, 1, 1, 1]
    first, second = notes_on(log.starts)
    assert first == "The log holds 2 starts. The picture shows the last one."
    assert second.startswith(
        "Memory for the KV cache by max_model_len: 20,000 tokens: 3.81 GiB, 29,000 tokens: 2.89 GiB. "
    )
    assert "A longer max_model_len need not leave less" in second


def test_eight_workers_print_one_pool() -> None:
    lines = [f"(VllmWorker rank={rank} pid=1) GPU KV cache size: {106_640 + 16 * rank:,} tokens" for rank in range(8)]
    log = read_log("\n".join(lines))
    assert log.starts[0].num_tokens == 106_640
    assert notes_on(log.starts) == ["The size was printed 8 times, once by each worker; it counts once."]


def test_a_block_size_of_the_command_line_counts() -> None:
    log = read_log("vllm serve M --block-size 32\nGPU KV cache size: 3,200 tokens")
    assert (log.starts[0].tokens_per_block, log.starts[0].num_blocks) == (32, 100)


def test_a_draft_models_pool_is_not_the_models() -> None:
    pool = "KV Cache is allocated. dtype: torch.float8_e4m3fn, #tokens: 454112, K size: {gib} GB, V size: {gib} GB"
    log = read_log(f"{pool.format(gib=3.46)}\nLoad weight begin. avail mem=8.40 GB\n{pool.format(gib=1.08)}")
    [start] = log.starts
    assert start.kv_gib == pytest.approx(6.92)


def test_a_long_log_is_read_to_its_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(start_module, "MAX_LINES", 3)
    log = read_log("a\nb\nc\nd\ne")
    assert (len(log.lines), log.num_left_out) == (3, 2)


@given(st.lists(st.sampled_from([line for f in FRAGMENTS for line, _kinds in f.lines] + list(LEFT_ALONE)), max_size=12))
def test_any_mixture_of_lines_is_explained(lines: list[str]) -> None:
    log = read_log("\n".join(lines))
    for line in log.known:
        assert len(explain(log.starts[line.start], line)) == len(line.readings)
    notes_on(log.starts)
    for start in log.starts:
        assert all(part.gib > 0 for part in start.parts)


@given(st.text())
def test_any_text_is_read(text: str) -> None:
    read_log(text)
