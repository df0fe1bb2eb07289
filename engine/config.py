"""EngineConfig: every knob of the engine, checked in one place."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from engine.i18n import _
from engine.trace.events import PreemptionMode
from engine.trace.validation import check_fields
from kernels.registry import BACKEND_NAMES, BACKENDS, is_split_by_batch

ParallelSampling = Literal["fork", "prefix_cache"]

MAX_BLOCK_SIZE = 256
DEFAULT_MAX_MODEL_LEN = 512


class ConfigError(ValueError):
    """A setting that cannot work. The message names the setting, the limit and what to do."""


@dataclass(frozen=True, slots=True)
class EngineConfig:
    """What an engine is made of. Raises ConfigError when two settings cannot live together.

    model: `smollm2-135m-instruct`, a Hugging Face id, a local folder, or `tiny-random`.
    block_size: slots in a block, 1 to 256. num_blocks: blocks in the pool. num_cpu_blocks: blocks in swap space.
    max_num_seqs: sequences running at once. max_num_batched_tokens: tokens computed in one step.
    max_model_len: prompt and output together, in tokens; no more than the model has positions. The default, 512,
        is lowered to them, with a line in the log.
    long_prefill_token_threshold: at most this many tokens of one sequence in a step (chunked prefill), or None.
    parallel_sampling: `fork` shares blocks at once and copies on write (the 2023 paper);
        `prefix_cache` lets `n` sequences find each other's full blocks by content (vLLM V1).
    kv_dtype: the number type of keys and values: `float32`, `bfloat16`, or `auto`, which halves the memory to read with
        `bfloat16` wherever the model itself is no more exact.
    batch_invariant: a token's logits are the same bits however its prompt was cut into steps, whoever else runs, after
        preemption, over cached blocks and in any order of blocks, as long as model, number types, backend and machine
        are the same. Products and attention then add in one fixed order, at a cost (benchmarks/batch_invariant.py);
        without it they differ by rounding, which can change a token. On the CPU only.
    enforce_eager: launch the kernels of every step one by one. Otherwise decode steps on a GPU are recorded as CUDA
        graphs and replayed. vLLM's name for it; a CPU has no graphs, so there it changes nothing.
    free_order: block ids to hand out first, in that order (lessons ask for block 6, then 1, then 8).
    """

    model: str = "smollm2-135m-instruct"
    block_size: int = 16
    num_blocks: int = 64
    max_num_seqs: int = 8
    max_num_batched_tokens: int = 256
    max_model_len: int = DEFAULT_MAX_MODEL_LEN
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
    batch_invariant: bool = False
    enforce_eager: bool = False
    free_order: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        check_fields(self, ConfigError)
        self._require_range("block_size", 1, MAX_BLOCK_SIZE)
        self._require_range("num_blocks", 1, None)
        self._require_range("max_num_seqs", 1, None)
        self._require_range("max_model_len", 1, None)
        self._require_range("num_cpu_blocks", 0, self.num_blocks)
        if self.max_num_batched_tokens < self.max_num_seqs:
            raise ConfigError(
                _(
                    "max_num_batched_tokens ({max_num_batched_tokens}) must be at least max_num_seqs "
                    "({max_num_seqs}): every running sequence needs one token a step."
                ).format(max_num_batched_tokens=self.max_num_batched_tokens, max_num_seqs=self.max_num_seqs)
            )
        if self.long_prefill_token_threshold is not None:
            self._require_range("long_prefill_token_threshold", 1, None)
        self._require_choice("attention_backend", BACKEND_NAMES)
        self._require_choice("kv_dtype", ("auto", "float32", "bfloat16"))
        for name in ("batch_invariant", "enforce_eager"):
            if not isinstance(getattr(self, name), bool):
                raise ConfigError(
                    _("{name} must be True or False; it is {value!r}.").format(name=name, value=getattr(self, name))
                )
        if self.batch_invariant and is_split_by_batch(self.attention_backend):
            others = ", ".join(repr(spec.name) for spec in BACKENDS if not spec.splits_by_batch)
            raise ConfigError(
                _(
                    "batch_invariant cannot run on attention_backend {attention_backend!r}: its kernels "
                    "split keys by the size of the batch, so sums are added in another order. Choose "
                    "{others} or 'auto' with device 'cpu'."
                ).format(attention_backend=self.attention_backend, others=others)
            )
        if self.preemption_mode == "swap" and self.num_cpu_blocks == 0:
            raise ConfigError(
                _("preemption_mode 'swap' needs num_cpu_blocks of at least 1: the blocks are swapped to CPU memory.")
            )
        if self.parallel_sampling == "prefix_cache" and not self.enable_prefix_caching:
            raise ConfigError(
                _("parallel_sampling 'prefix_cache' needs enable_prefix_caching: that is how samples share blocks.")
            )

    def for_positions(self, max_positions: int, model: str) -> EngineConfig:
        """The config for a model of so many positions: the default `max_model_len` is lowered to them.

        Raises ConfigError for another `max_model_len` beyond them.
        """
        if self.max_model_len <= max_positions:
            return self
        if self.max_model_len == DEFAULT_MAX_MODEL_LEN:
            return replace(self, max_model_len=max_positions)
        raise ConfigError(
            _(
                "max_model_len is {max_model_len}, but {model} supports {max_positions} positions: choose at "
                "most {max_positions}."
            ).format(max_model_len=self.max_model_len, model=model, max_positions=max_positions)
        )

    def _require_range(self, name: str, low: int, high: int | None) -> None:
        value = getattr(self, name)
        if value < low or (high is not None and value > high):
            limit = f"from {low} to {high}" if high is not None else f"of at least {low}"
            raise ConfigError(
                _("{name} must be a whole number {limit}; it is {value!r}.").format(name=name, limit=limit, value=value)
            )

    def _require_choice(self, name: str, choices: tuple[str, ...]) -> None:
        if getattr(self, name) not in choices:
            raise ConfigError(
                _("{name} must be one of {choices}; it is {value!r}.").format(
                    name=name, choices=", ".join(choices), value=getattr(self, name)
                )
            )
