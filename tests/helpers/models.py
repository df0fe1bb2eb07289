"""Real models to hold the engine's against, and the shortest way to push tokens through a paged cache."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from engine.model.kv_store import KVStore
from engine.model.linear import HAS_NUMBA
from engine.model.weights.embedded import EMBEDDED_MODEL
from engine.model.weights.load import LoadedModel, load_model
from engine.runner import ModelRunner
from kernels.backend import select_backend

if TYPE_CHECKING:
    from transformers import PreTrainedModel

CPU = torch.device("cpu")


@dataclass
class Tokens:
    token_ids: list[int]


@dataclass
class Item:
    """A scheduled sequence with nothing but what the runner reads."""

    sequence: Tokens
    start: int
    num_new_tokens: int
    block_table: list[int]
    needs_logits: bool = True


def runs_bf16_gemm() -> bool:
    """Whether `kernels.bf16_gemm` runs here: also where oneDNN is faster, so that models are not packed for it."""
    if not HAS_NUMBA:
        return False
    from kernels.bf16_gemm.avx512 import has_instruction

    return has_instruction()


@cache
def loaded(name: str = EMBEDDED_MODEL, dtype: str = "float32") -> LoadedModel:
    """One copy a test process: models are immutable."""
    return load_model(name, dtype=dtype)


def new_kv_store(
    model: LoadedModel,
    *,
    num_blocks: int = 64,
    block_size: int = 4,
    num_cpu_blocks: int = 0,
    backend: str = "reference",
    dtype: torch.dtype = torch.float32,
) -> KVStore:
    return KVStore(
        num_layers=model.config.num_layers,
        num_blocks=num_blocks,
        block_size=block_size,
        num_kv_heads=model.config.num_kv_heads,
        head_dim=model.config.head_dim,
        dtype=dtype,
        device=CPU,
        num_cpu_blocks=num_cpu_blocks,
        backend=select_backend(backend, CPU),
    )


def paged_logits(model: LoadedModel, token_ids: list[int], chunks: Iterable[int], **store: Any) -> Tensor:
    """Feed `token_ids` in chunks of the given sizes through a new cache whose blocks are handed out backwards.

    Returns the logits after each chunk, [num_chunks, vocab_size].
    """
    kv_store = new_kv_store(model, **store)
    runner = ModelRunner(model.model, kv_store)
    block_table = list(reversed(range(kv_store.num_blocks)))
    rows, start = [], 0
    for size in chunks:
        rows.append(runner.run([Item(Tokens(token_ids), start, size, block_table)])[0])
        start += size
    assert start == len(token_ids)
    return torch.stack(rows)


@torch.no_grad()
def transformers_logits(model: PreTrainedModel, token_ids: list[int]) -> Tensor:
    """Logits after every token, [num_tokens, vocab_size]."""
    logits: Tensor = model(torch.tensor([token_ids])).logits[0]
    return logits
