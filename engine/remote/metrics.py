"""`/metrics` of vLLM and of SGLang, read under one set of names, also where Ray has put its own in front.

    sample = read_metrics(text, time)
    sample.num_running, sample.kv_usage ...      None where the server does not say

Counters are totals since the server started. Several engines behind one address are added up; their usage is averaged.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, Literal

_LINE = re.compile(r'([A-Za-z_:][A-Za-z0-9_:]*)(?:\{((?:[^"}]|"(?:[^"\\]|\\.)*+")*+)\})?\s+(\S+)')
"""Name, labels and value. What follows, a time or an exemplar with labels and a value of its own, is not read."""
_PREFIX = re.compile(r"^(?:ray_)?(vllm|sglang|paged_kv)[:_]")
"""Before a metric's own name. Ray puts its name in front and writes `_` for `:`, as other collectors do."""
PREFIXES = "vllm:, sglang: or paged_kv:, with or without ray_ before it, or with _ for the colon"
_LABEL = re.compile(r'([A-Za-z_][A-Za-z0-9_]*)="((?:[^"\\]|\\.)*)"')
MAX_LINES = 100_000
Labels = Mapping[str, str]
OURS: Final = "This project's engine"
ServerKind = Literal["vLLM", "SGLang", "This project's engine"]


@dataclass(frozen=True, slots=True)
class MetricsSample:
    """One look. `time`: seconds since 1970 by our clock.

    kv_usage: share of the KV cache in use, 0 to 1. prefix_queries, prefix_hits: tokens looked up and found.
    hit_rate: a gauge of SGLang, 0 to 1. step_seconds, num_steps: time in scheduler iterations and their number.
    num_blocks, block_size: the pool, where the server tells.
    """

    time: float
    num_running: float | None = None
    num_waiting: float | None = None
    kv_usage: float | None = None
    prefix_queries: float | None = None
    prefix_hits: float | None = None
    hit_rate: float | None = None
    num_preemptions: float | None = None
    prompt_tokens: float | None = None
    generation_tokens: float | None = None
    step_seconds: float | None = None
    num_steps: float | None = None
    num_blocks: int | None = None
    block_size: int | None = None
    server: ServerKind | None = None


_NAMES = {
    "num_running": ("vllm:num_requests_running", "sglang:num_running_reqs"),
    "num_waiting": ("vllm:num_requests_waiting", "sglang:num_queue_reqs"),
    "kv_usage": ("vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc", "sglang:token_usage"),
    "prefix_queries": ("vllm:prefix_cache_queries_total", "vllm:gpu_prefix_cache_queries_total"),
    "prefix_hits": (
        "vllm:prefix_cache_hits_total", "vllm:gpu_prefix_cache_hits_total", "sglang:cached_tokens_total",
    ),
    "hit_rate": ("sglang:cache_hit_rate",),
    "num_preemptions": ("vllm:num_preemptions_total", "sglang:num_retracted_reqs_total", "sglang:num_retracted_reqs"),
    "prompt_tokens": ("vllm:prompt_tokens_total", "sglang:prompt_tokens_total"),
    "generation_tokens": ("vllm:generation_tokens_total", "sglang:generation_tokens_total"),
    "step_seconds": ("paged_kv:step_time_seconds_sum",),
    "num_steps": ("paged_kv:step_time_seconds_count",),
}  # fmt: skip
"""Our name: theirs, the first that is there counts."""
_AVERAGED = {"kv_usage", "hit_rate"}
_CONFIG = "vllm:cache_config_info"


def read_metrics(text: str, time: float) -> MetricsSample:
    """The sample in a page of Prometheus text. Lines that are wrong or unknown are left out."""
    found: dict[str, list[float]] = {}
    config: Labels = {}
    for metric in _metrics(text):
        found.setdefault(metric.name, []).append(metric.value)
        if metric.name == _CONFIG:
            config = metric.labels
    values = {ours: _value(ours, theirs, found) for ours, theirs in _NAMES.items()}
    if values["prefix_queries"] is None and values["prefix_hits"] is not None:
        values["prefix_queries"] = values["prompt_tokens"]  # SGLang looks every prompt token up
    return MetricsSample(
        time=time,
        num_blocks=_whole(config.get("num_gpu_blocks")),
        block_size=_whole(config.get("block_size")),
        server=_server(found),
        **values,
    )


@dataclass(frozen=True, slots=True)
class Metric:
    """One line of Prometheus text. `name`: as vLLM and SGLang write it, `vllm:num_requests_running`."""

    name: str
    labels: Labels
    value: float


def parse_metric(line: str) -> Metric | None:
    """The series of one line; None for a comment, a value that is not finite, and every other line."""
    match = _LINE.match(line)
    if match is None or line.startswith("#"):
        return None
    try:
        value = float(match[3])
    except ValueError:
        return None
    if not math.isfinite(value):
        return None
    return Metric(_PREFIX.sub(r"\1:", match[1]), dict(_LABEL.findall(match[2] or "")), value)


def _metrics(text: str) -> Iterator[Metric]:
    for line in text.split("\n")[:MAX_LINES]:  # nothing else ends a line here: labels may hold U+2028
        metric = parse_metric(line)
        if metric is not None:
            yield metric


def _value(ours: str, theirs: tuple[str, ...], found: Mapping[str, list[float]]) -> float | None:
    values = next((found[name] for name in theirs if name in found), None)
    if values is None:
        return None
    return sum(values) / len(values) if ours in _AVERAGED else sum(values)


def _server(found: Mapping[str, list[float]]) -> ServerKind | None:
    if any(name.startswith("paged_kv:") for name in found):
        return OURS
    if any(name.startswith("vllm:") for name in found):
        return "vLLM"
    return "SGLang" if any(name.startswith("sglang:") for name in found) else None


def _whole(text: str | None) -> int | None:
    return int(text) if text is not None and text.isascii() and text.isdigit() and len(text) < 10 else None
