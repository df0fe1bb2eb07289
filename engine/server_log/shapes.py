"""The known shapes of lines: a pattern each, and the values that a line of that shape holds.

    readings_of("INFO 10-03 16:22:17 [gpu_worker.py:298] Available KV cache memory: 6.51 GiB")
    [Reading("available", {"kv_gib": 6.51})]

A line may hold several. What stands in quotation marks before a known phrase, a logged prompt say, may look like
a log itself, so nothing behind a quotation mark counts; lines of `/metrics` are read by engine/remote/metrics.py.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from engine.remote.metrics import parse_metric

Value = float | int | str
_N = r"\d+(?:,\d{3})*"
_R = r"-?\d+(?:\.\d+)?"
_GIB = r"\s*G(?:i?B)"

_PATTERNS: Mapping[str, str] = {
    # -- vLLM: weights and the profile run --
    "weights": rf"(?:Loading model weights|Model loading) took (?P<weights_gib>{_R}){_GIB}",
    "max_model_len": rf"Using max model len (?P<max_model_len>{_N})",
    "chunked_prefill": rf"Chunked prefill is enabled with max_num_batched_tokens=(?P<num_batched>{_N})",
    "profile": (
        rf"Memory profiling results:.*?total_gpu_memory=(?P<total_gib>{_R})GiB"
        rf"(?:.*?peak_torch_memory=(?P<peak_gib>{_R})GiB)?(?:.*?non_torch_memory=(?P<non_torch_gib>{_R})GiB)?"
        rf"(?:.*?kv_cache_size=(?P<kv_gib>{_R})GiB)?(?:.*?gpu_memory_utilization=(?P<utilization>{_R}))?"
    ),
    "budget": (
        rf"the current vLLM instance can use total_gpu_memory \((?P<total_gib>{_R})GiB\) x "
        rf"gpu_memory_utilization \((?P<utilization>{_R})\) = (?P<budget_gib>{_R})GiB"
    ),
    "parts": (
        rf"model weights take (?P<weights_gib>{_R})GiB; non_torch_memory takes (?P<non_torch_gib>{_R})GiB; "
        rf"PyTorch activation peak memory takes (?P<activation_gib>{_R})GiB; "
        rf"the rest of the memory reserved for KV Cache is (?P<kv_gib>{_R})GiB"
    ),
    "available": rf"Available KV cache memory: (?P<kv_gib>{_R}){_GIB}",
    "startup_summary": (
        rf"Free memory on device \((?P<free_gib>{_R})/(?P<total_gib>{_R}){_GIB}\) on startup\. "
        rf"Desired GPU memory utilization is \((?P<utilization>{_R}), (?P<budget_gib>{_R}){_GIB}\)\."
        rf"(?: Actual usage is (?:(?P<consumed_gib>{_R}){_GIB} for consumed memory \(weights \+ non-torch\)"
        rf"|(?P<weights_gib>{_R}){_GIB} for weights?), (?P<activation_gib>{_R}){_GIB} for peak activation"
        rf"(?:, (?P<non_torch_gib>{_R}){_GIB} for non-torch memory)?"
        rf"(?:,? and (?P<graphs_gib>{_R}){_GIB} for CUDAGraph memory)?)?"
    ),
    "kv_suggestion": (
        rf"--kv-cache-memory(?:-bytes)?=(?P<full_bytes>\d+)`? \((?P<full_gib>{_R}){_GIB}\) to fully utilize gpu memory"
        rf"(?:\. Current kv cache memory in use is (?P<kv_gib>{_R}){_GIB})?"
    ),
    "graphs": rf"Graph capturing finished in {_R} secs?, took (?P<graphs_gib>{_R}){_GIB}",
    "graph_pool": rf"CUDA graph pool memory: (?P<graphs_gib>{_R}){_GIB} \(actual\), (?P<estimated_gib>{_R}){_GIB}",
    "graph_estimate": rf"Estimated CUDA graph memory: (?P<estimated_gib>{_R}){_GIB}",
    # -- vLLM: the pool --
    "blocks": rf"(?:# )?(?:GPU|CUDA|cuda) blocks: (?P<num_blocks>{_N})(?:, # CPU blocks: (?P<num_cpu_blocks>{_N}))?",
    "override": rf"Overriding num_gpu_blocks=(?P<profiled>{_N}) with num_gpu_blocks_override=(?P<num_blocks>{_N})",
    "kv_size": rf"GPU KV cache size: (?P<num_tokens>{_N}) tokens",
    "concurrency": rf"Maximum concurrency for (?P<max_model_len>{_N}) tokens per request: (?P<concurrency>{_R})x",
    "attention_block": rf"Setting attention block size to (?P<attention_block>{_N}) tokens",
    "mamba_padding": rf"Padding mamba page size by (?P<percent>{_R})%",
    "padding_layers": rf"Add (?P<num_layers>{_N}) padding layers, may waste at most (?P<percent>{_R})% KV cache memory",
    "no_hybrid": r"Hybrid KV cache manager is disabled",
    # -- vLLM: it does not start --
    "too_long_tokens": (
        rf"model's max seq len \((?P<max_model_len>{_N})\) is larger than the maximum number of tokens that can be "
        rf"stored in KV cache \((?P<num_tokens>{_N})\)"
    ),
    "too_long_memory": (
        rf"To serve at least one request with the models?'s max seq len \((?P<max_model_len>{_N})\), "
        rf"\(?(?P<needed_gib>{_R}){_GIB} KV cache is needed, which is larger than the available KV cache memory "
        rf"\((?P<kv_gib>{_R}){_GIB}\)(?:\.? Based on the available memory, the estimated maximum model length is "
        rf"(?P<fitting_len>{_N}))?"
    ),
    "no_memory": r"No available memory for the cache blocks",
    "out_of_memory": rf"(?:CUDA|HIP) out of memory\. Tried to allocate (?P<amount>{_R} [KMG]iB)",
    # -- vLLM: while it runs --
    "stats": (
        rf"Avg prompt throughput: (?P<prompt_rate>{_R}) tokens/s, Avg generation throughput: (?P<output_rate>{_R}) "
        rf"tokens/s, Running: (?P<running>{_N}) reqs, (?:Swapped: (?P<swapped>{_N}) reqs, )?"
        rf"(?:Waiting|Pending): (?P<waiting>{_N}) reqs,.*?GPU KV cache usage: (?P<usage>{_R})%"
        rf"(?:, CPU KV cache usage: (?P<cpu_usage>{_R})%)?(?:,.*?Prefix cache hit rate: (?P<hit_rate>{_R})%)?"
    ),
    "hit_rates": rf"Prefix cache hit rate: GPU: (?P<hit_rate>{_R})%, CPU: (?P<cpu_hit_rate>{_R})%",
    "preempted": (
        r"Sequence group \S+ is preempted by PreemptionMode\.(?P<mode>RECOMPUTE|SWAP) mode because"
        rf"(?:.*?total_num_cumulative_preemption=(?P<count>{_N}))?"
    ),
    # -- SGLang --
    "sgl_weights": (
        rf"Load weight end\..*?avail mem=(?P<left_gib>{_R}){_GIB}(?:, mem usage=(?P<weights_gib>{_R}){_GIB})?"
    ),
    "sgl_weights_begin": rf"Load weight begin\. avail mem=(?P<left_gib>{_R}){_GIB}",
    "sgl_pool": (
        rf"KV Cache is allocated\.(?: dtype: (?P<dtype>[\w.]+),)? #tokens: (?P<num_tokens>{_N}), "
        rf"(?:K size: (?P<k_gib>{_R}){_GIB}, V size: (?P<v_gib>{_R}){_GIB}|KV size: (?P<kv_gib>{_R}){_GIB})"
    ),
    "sgl_windows": rf"full_layer_tokens=(?P<num_tokens>{_N}), swa_layer_tokens=(?P<window_tokens>{_N})",
    "sgl_pool_end": rf"Memory pool end\. avail mem=(?P<left_gib>{_R}){_GIB}",
    "sgl_graphs": (
        rf"Capture (?:cuda|cpu) graph end\..*?(?:mem usage=(?P<graphs_gib>{_R}){_GIB}\. )?"
        rf"avail mem=(?P<left_gib>{_R}){_GIB}"
    ),
    "sgl_limits": (
        rf"max_total_num_tokens=(?P<num_tokens>{_N}), chunked_prefill_size=-?{_N}, max_prefill_tokens={_N}, "
        rf"max_running_requests=(?P<max_running>{_N}), context_len=(?P<max_model_len>{_N})"
        rf"(?:, available_gpu_mem=(?P<left_gib>{_R}){_GIB})?"
    ),
    "sgl_prefill": (
        rf"Prefill batch[.,]? .*?#new-seq: (?P<num_new>{_N}), #new-token: (?P<new_tokens>{_N}), "
        rf"#cached-token: (?P<cached_tokens>{_N}),(?: cache hit rate: (?P<hit_rate>{_R})%,)?"
        rf"(?:.*?(?<!swa )token usage: (?P<usage>{_R}))?(?:.*?swa token usage: (?P<window_usage>{_R}))?"
        rf"(?:.*?#running-req: (?P<running>{_N}))?(?:.*?#queue-req: (?P<waiting>{_N}))?"
    ),
    "sgl_decode": (
        rf"Decode batch[.,]? .*?#running-req: (?P<running>{_N}), #(?:full )?token: (?P<held_tokens>{_N}), "
        rf"(?:full )?token usage: (?P<usage>{_R})(?:.*?swa token usage: (?P<window_usage>{_R}))?"
        rf"(?:.*?gen throughput \(token/s\): (?P<output_rate>{_R}))?(?:.*?#queue-req: (?P<waiting>{_N}))?"
    ),
    "sgl_retract": (
        rf"KV cache pool is full\. Retract requests\.(?: #retracted_reqs: (?P<retracted>{_N}))?"
        rf"(?:.*?#new_token_ratio: (?P<old_ratio>{_R}) -> (?P<new_ratio>{_R}))?"
    ),
}
METRICS: Mapping[str, str] = {
    "vllm:num_requests_running": "running",
    "vllm:num_requests_waiting": "waiting",
    "vllm:kv_cache_usage_perc": "usage",
    "vllm:gpu_cache_usage_perc": "usage",
    "vllm:cpu_cache_usage_perc": "cpu_usage",
    "vllm:prefix_cache_queries": "queries",
    "vllm:gpu_prefix_cache_queries": "queries",
    "vllm:prefix_cache_hits": "hits",
    "vllm:gpu_prefix_cache_hits": "hits",
    "vllm:gpu_prefix_cache_hit_rate": "hit_rate",
    "vllm:num_preemptions": "preemptions",
    "vllm:cache_config_info": "config",
    "vllm:prompt_tokens": "prompt_tokens",
    "sglang:num_running_reqs": "running",
    "sglang:num_queue_reqs": "waiting",
    "sglang:token_usage": "usage",
    "sglang:full_token_usage": "usage",
    "sglang:swa_token_usage": "window_usage",
    "sglang:num_used_tokens": "held_tokens",
    "sglang:kv_used_tokens": "held_tokens",
    "sglang:kv_available_tokens": "available_tokens",
    "sglang:kv_evictable_tokens": "evictable_tokens",
    "sglang:cache_hit_rate": "hit_rate",
    "sglang:cached_tokens": "hits",
    "sglang:prompt_tokens": "prompt_tokens",
    "sglang:num_retracted_reqs": "preemptions",
    "sglang:max_total_num_tokens": "pool",
    "sglang:max_prefill_tokens": "prefill_limit",
    "sglang:max_running_requests": "running_limit",
    "sglang:context_len": "max_model_len",
}
"""Series of `/metrics` that are about memory, without `_total`, and what each counts."""
_SHAPES = {kind: re.compile(pattern) for kind, pattern in _PATTERNS.items()}
KINDS = (*_SHAPES, "metric")
"""The kinds of readings."""
_WHOLE = re.compile(_N)
_REAL = re.compile(_R)
_BLOCK_SIZE = re.compile(r"(?<![\w-])(?:'block_size': |block_size=|--block-size[= ])(\d+)")


@dataclass(frozen=True, slots=True)
class Reading:
    """`kind`: the shape; `values`: what the line says, by name, without those that it leaves out."""

    kind: str
    values: Mapping[str, Value]


def readings_of(line: str) -> list[Reading]:
    """What one line says about memory, in the order of its text; empty for every other line."""
    metric = _metric_of(line)
    if metric is not None:
        return [metric]
    return [reading for _place, reading in sorted(_matches(line), key=lambda found: found[0])]


def block_size_of(line: str) -> int | None:
    """The block size that a command line or a printed configuration sets."""
    found = _BLOCK_SIZE.search(line)
    return int(found[1]) if found and len(found[1]) < 7 else None


def _matches(line: str) -> Iterator[tuple[int, Reading]]:
    for kind, shape in _SHAPES.items():
        match = shape.search(line)
        if match is None or _is_quoted(line[: match.start()]):
            continue
        values = {name: _value(text) for name, text in match.groupdict().items() if text is not None}
        yield match.start(), Reading(kind, values)


def _is_quoted(before: str) -> bool:
    """A backquote is the server's own: it marks options in messages."""
    return "'" in before.replace("model's", "").replace("models's", "") or '"' in before


def _value(text: str) -> Value:
    if _WHOLE.fullmatch(text):
        return int(text.replace(",", ""))
    return float(text) if _REAL.fullmatch(text) else text


def _metric_of(line: str) -> Reading | None:
    metric = parse_metric(line)
    counts = METRICS.get(metric.name.removesuffix("_total")) if metric is not None else None
    if metric is None or counts is None:
        return None
    values: dict[str, Value] = {"name": metric.name, "counts": counts, "value": metric.value}
    if counts == "config":
        values |= {f"label_{name}": _value(text) for name, text in metric.labels.items()}
    return Reading("metric", values)
