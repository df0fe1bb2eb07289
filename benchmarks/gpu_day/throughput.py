"""Tokens a second beside transformers' `generate`, in one shape: with noise for weights, which changes no speed."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from typing import TYPE_CHECKING

import torch

from benchmarks.gpu_day.context import Context
from benchmarks.gpu_day.findings import Finding, Measured, NotHereError, Target
from engine.model.config import ModelConfig
from engine.model.device import TORCH_DTYPES

if TYPE_CHECKING:
    from transformers import LlamaForCausalLM

    from benchmarks.contestants import Contestant

OURS, THEIRS = "this engine", "transformers"
ROUNDS = 3


def run(context: Context) -> Iterator[Finding]:
    if find_spec("transformers") is None:
        raise NotHereError("transformers is not installed")
    from benchmarks.contestants import TransformersGenerate

    theirs = TransformersGenerate(noise_in_transformers(context))
    yield from beside(context, theirs, THEIRS)


def beside(context: Context, theirs: Contestant, name: str) -> Iterator[Finding]:
    """Every cell of the sizes; our decode speed over theirs is held against the target."""
    from benchmarks.contestants import Limits, OurEngine
    from benchmarks.throughput import Cell, measure, rows_of

    sizes = context.sizes
    cells = [Cell(batch, prompt, sizes.new_tokens) for batch, prompt in sizes.throughput]
    limits = Limits(max(cell.batch for cell in cells), max(cell.prompt for cell in cells) + sizes.new_tokens)
    loaded = context.speed_model(context.dtype)
    contestants = {OURS: OurEngine(loaded, "auto", limits), name: theirs}
    tokens = range(loaded.config.vocab_size)
    for cell in cells:
        seconds = context.seconds_left() / (2 * len(cells))
        ours, other = rows_of(cell, measure(cell, contestants, ROUNDS, seconds, tokens))
        for row in (ours, other):
            yield Measured({"model": loaded.name, "dtype": loaded.dtype, **row})
        yield Target(
            f"decode speed over that of {name} at {cell.batch} x {cell.prompt}",
            float(str(ours["decode tokens/s"])) / float(str(other["decode tokens/s"])),
            1.0, at_least=True, on_card=context.on_card,
        )  # fmt: skip


def noise_in_transformers(context: Context) -> LlamaForCausalLM:
    """A Llama of the shape that our engine is timed in."""
    from transformers import LlamaForCausalLM

    c = context.speed_model(context.dtype).config
    with torch.device(context.device):
        model = LlamaForCausalLM(_config_in_transformers(c))
    return model.to(TORCH_DTYPES[context.dtype]).eval()


def _config_in_transformers(c: ModelConfig) -> object:
    from transformers import LlamaConfig

    return LlamaConfig(
        vocab_size=c.vocab_size, hidden_size=c.hidden_size, intermediate_size=c.intermediate_size,
        num_hidden_layers=c.num_layers, num_attention_heads=c.num_heads, num_key_value_heads=c.num_kv_heads,
        head_dim=c.head_dim, max_position_embeddings=c.max_position_embeddings, rms_norm_eps=c.rms_norm_eps,
        tie_word_embeddings=c.tie_word_embeddings, bos_token_id=0, eos_token_id=0,
    )  # fmt: skip
