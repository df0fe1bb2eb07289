"""What an engine is put together from. A real model brings all of it; a script brings it without weights."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from torch import Tensor

from engine.kv_cache import BlockStore
from engine.sampler import TokenChooser
from engine.scheduler import ScheduledSequence
from engine.tokenizer import Tokenizer


class Runner(Protocol):
    """Runs the scheduled tokens, writing keys and values; returns a row of logits for each item that needs one."""

    def run(self, items: Sequence[ScheduledSequence]) -> Tensor: ...


@dataclass(frozen=True, slots=True)
class EngineParts:
    """`info` describes the source for the trace: model, backend and why, dtype, KV bytes a token."""

    tokenizer: Tokenizer
    runner: Runner
    chooser: TokenChooser
    store: BlockStore | None
    vocab_size: int
    info: dict[str, Any]
