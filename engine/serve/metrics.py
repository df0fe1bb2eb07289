"""Counters and gauges from the engine's log, and `/metrics` under vLLM's names: a sink of AsyncEngine."""

from __future__ import annotations

from dataclasses import dataclass, replace

from engine.engine import Engine
from engine.trace.event_base import Event
from engine.trace.events import PrefixQueried, RequestAdded, RequestPreempted, StepCompleted, TokenSampled


@dataclass(frozen=True, slots=True)
class ServerCounts:
    """Totals since the start and gauges of now. Prefix figures are in tokens and leave resumed requests out."""

    num_running: int = 0
    num_waiting: int = 0
    num_used_blocks: int = 0
    prefix_queries: int = 0
    prefix_hits: int = 0
    num_preemptions: int = 0
    prompt_tokens: int = 0
    generation_tokens: int = 0
    num_steps: int = 0
    step_seconds: float = 0.0


class StatLogger:
    """`counts` may be read from any thread. `num_cached_tokens`: of each request, found in the prefix cache; whoever
    reads it takes it out."""

    def __init__(self) -> None:
        self.counts = ServerCounts()
        self.num_cached_tokens: dict[str, int] = {}

    def __call__(self, engine: Engine, events: list[Event]) -> None:
        counts = self.counts
        for event in events:
            counts = self._counted(counts, event)
        scheduler, pool = engine.scheduler, engine.kv.pool
        self.counts = replace(
            counts,
            num_running=len(scheduler.running),
            num_waiting=len(scheduler.waiting) + len(scheduler.swapped),
            num_used_blocks=pool.num_blocks - pool.num_free_blocks,
        )

    def _counted(self, counts: ServerCounts, event: Event) -> ServerCounts:
        match event:
            case RequestAdded():
                return replace(counts, prompt_tokens=counts.prompt_tokens + len(event.prompt_token_ids))
            case TokenSampled():
                return replace(counts, generation_tokens=counts.generation_tokens + 1)
            case RequestPreempted():
                return replace(counts, num_preemptions=counts.num_preemptions + 1)
            case PrefixQueried(recomputation=False):
                request_id = event.seq_id.partition("#")[0]  # further samples are A#1, A#2; the first counts
                self.num_cached_tokens.setdefault(request_id, event.num_hit_tokens)
                return replace(
                    counts,
                    prefix_queries=counts.prefix_queries + event.num_query_tokens,
                    prefix_hits=counts.prefix_hits + event.num_hit_tokens,
                )
            case StepCompleted():
                seconds = counts.step_seconds + event.elapsed_ms / 1000
                return replace(counts, num_steps=counts.num_steps + 1, step_seconds=seconds)
        return counts


def metrics_text(counts: ServerCounts, model: str, num_blocks: int, block_size: int) -> str:
    """Prometheus text of one engine."""
    config = f'vllm:cache_config_info{{block_size="{block_size}",num_gpu_blocks="{num_blocks}"}} 1\n'
    return counts_text(counts, model, num_blocks) + config


def counts_text(counts: ServerCounts, model: str, num_blocks: int) -> str:
    """The counts alone. `model` is a label, so its quotes, backslashes and line ends are written out."""
    name = model.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
    usage = counts.num_used_blocks / max(num_blocks, 1)
    rows = (
        ("vllm:num_requests_running", "gauge", "Requests in the running batch", counts.num_running),
        ("vllm:num_requests_waiting", "gauge", "Requests waiting", counts.num_waiting),
        ("vllm:kv_cache_usage_perc", "gauge", "Used blocks over all, 0 to 1", usage),
        ("vllm:prefix_cache_queries_total", "counter", "Tokens looked up", counts.prefix_queries),
        ("vllm:prefix_cache_hits_total", "counter", "Tokens found", counts.prefix_hits),
        ("vllm:num_preemptions_total", "counter", "Preemptions", counts.num_preemptions),
        ("vllm:prompt_tokens_total", "counter", "Prompt tokens taken in", counts.prompt_tokens),
        ("vllm:generation_tokens_total", "counter", "Tokens generated", counts.generation_tokens),
        ("paged_kv:step_time_seconds_sum", "counter", "Time in scheduler iterations", counts.step_seconds),
        ("paged_kv:step_time_seconds_count", "counter", "Scheduler iterations", counts.num_steps),
    )
    lines = [
        line
        for metric, kind, what, value in rows
        for line in (f"# HELP {metric} {what}.", f"# TYPE {metric} {kind}", f'{metric}{{model_name="{name}"}} {value}')
    ]
    return "\n".join(lines) + "\n"
