"""EngineConfig: every knob of the engine, checked in one place."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from engine.events import PreemptionMode

ParallelSampling = Literal["fork", "prefix_cache"]

MAX_BLOCK_SIZE = 256


class ConfigError(ValueError):
    """A setting that cannot work. The message names the setting, the limit and what to do."""


@dataclass(frozen=True, slots=True)
class EngineConfig:
    """What an engine is made of. Raises ConfigError when two settings cannot live together.

    model: `smollm2-135m-instruct`, a Hugging Face id, a local folder, or `tiny-random`.
    block_size: slots in a block, 1 to 256. num_blocks: blocks in the pool. num_cpu_blocks: blocks in swap space.
    max_num_seqs: sequences running at once. max_num_batched_tokens: tokens computed in one step.
    max_model_len: prompt and output together, in tokens.
    long_prefill_token_threshold: at most this many tokens of one sequence in a step (chunked prefill), or None.
    parallel_sampling: `fork` shares blocks at once and copies on write (the 2023 paper);
        `prefix_cache` lets `n` sequences find each other's full blocks by content (vLLM V1).
    kv_dtype: the number type of keys and values: `float32`, `bfloat16`, or `auto`, which halves the memory to read with
        `bfloat16` wherever the model itself is no more exact.
    free_order: block ids to hand out first, in that order (lessons ask for block 6, then 1, then 8).
    """

    model: str = "smollm2-135m-instruct"
    block_size: int = 16
    num_blocks: int = 64
    max_num_seqs: int = 8
    max_num_batched_tokens: int = 256
    max_model_len: int = 512
    enable_prefix_caching: bool = True
    preemption_mode: PreemptionMode = "recompute"
    num_cpu_blocks: int = 0
    long_prefill_token_threshold: int | None = None
    parallel_sampling: ParallelSampling = "fork"
    attention_backend: str = "auto"
    device: str = "auto"
    dtype: str = "auto"
    kv_dtype: str = "auto"
    seed: int = 0
    free_order: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        self._require_range("block_size", 1, MAX_BLOCK_SIZE)
        self._require_range("num_blocks", 1, None)
        self._require_range("max_num_seqs", 1, None)
        self._require_range("max_model_len", 1, None)
        self._require_range("num_cpu_blocks", 0, self.num_blocks)
        if self.max_num_batched_tokens < self.max_num_seqs:
            raise ConfigError(
                f"max_num_batched_tokens ({self.max_num_batched_tokens}) must be at least max_num_seqs "
                f"({self.max_num_seqs}): every running sequence needs one token a step."
            )
        if self.long_prefill_token_threshold is not None:
            self._require_range("long_prefill_token_threshold", 1, None)
        self._require_choice("preemption_mode", ("recompute", "swap"))
        self._require_choice("parallel_sampling", ("fork", "prefix_cache"))
        self._require_choice("attention_backend", ("auto", "triton", "cpu", "reference"))
        self._require_choice("kv_dtype", ("auto", "float32", "bfloat16"))
        if self.preemption_mode == "swap" and self.num_cpu_blocks == 0:
            raise ConfigError("preemption_mode 'swap' needs num_cpu_blocks of at least 1: blocks must go somewhere.")
        if self.parallel_sampling == "prefix_cache" and not self.enable_prefix_caching:
            raise ConfigError("parallel_sampling 'prefix_cache' needs enable_prefix_caching: samples meet there.")

    def _require_range(self, name: str, low: int, high: int | None) -> None:
        value = getattr(self, name)
        if isinstance(value, bool) or not isinstance(value, int) or value < low or (high is not None and value > high):
            limit = f"from {low} to {high}" if high is not None else f"of at least {low}"
            raise ConfigError(f"{name} must be a whole number {limit}; it is {value!r}.")

    def _require_choice(self, name: str, choices: tuple[str, ...]) -> None:
        if getattr(self, name) not in choices:
            raise ConfigError(f"{name} must be one of {', '.join(choices)}; it is {getattr(self, name)!r}.")
