"""A model whose next token is a hash of what it reads through the block table.

It stores one number a slot (the token), reads the whole context back through the table, and answers from that: any
slip in tables, copies, swaps or sharing changes its output. It needs no torch arithmetic to speak of, so thousands
of engine steps take seconds.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import torch
from torch import Tensor

from engine import Engine, EngineConfig
from engine.components import EngineComponents
from engine.model.tokenizer import ByteTokenizer
from engine.sampler import LogitsSampler
from engine.scheduler import ScheduledSequence

POISON = -7
VOCAB_SIZE = 64


class TokenStore:
    """Blocks that hold token ids instead of keys and values."""

    def __init__(self, num_blocks: int, num_cpu_blocks: int, block_size: int) -> None:
        self.blocks = [[POISON] * block_size for _ in range(num_blocks)]
        self.cpu_blocks = [[POISON] * block_size for _ in range(num_cpu_blocks)]

    def copy_block(self, src_block_id: int, dst_block_id: int) -> None:
        self.blocks[dst_block_id][:] = self.blocks[src_block_id]

    def swap_out(self, src_to_dst: Sequence[tuple[int, int]]) -> None:
        for block_id, cpu_block_id in src_to_dst:
            self.cpu_blocks[cpu_block_id][:] = self.blocks[block_id]

    def swap_in(self, src_to_dst: Sequence[tuple[int, int]]) -> None:
        for cpu_block_id, block_id in src_to_dst:
            self.blocks[block_id][:] = self.cpu_blocks[cpu_block_id]

    def permute(self, permutation: Sequence[int]) -> None:
        old = [list(block) for block in self.blocks]
        for source, target in enumerate(permutation):
            self.blocks[target][:] = old[source]


class HashRunner:
    """Writes the scheduled tokens, reads the context through the table, scores the next token from it."""

    def __init__(self, store: TokenStore, block_size: int) -> None:
        self.store = store
        self.block_size = block_size

    def run(self, items: Sequence[ScheduledSequence]) -> Tensor:
        for item in items:
            assert item.num_new_tokens >= 1, "a scheduled sequence must have a query token"
            for position in range(item.start, item.start + item.num_new_tokens):
                block, offset = divmod(position, self.block_size)
                self.store.blocks[item.block_table[block]][offset] = item.sequence.token_ids[position]
        rows = [next_scores(self._read(item)) for item in items if item.needs_logits]
        return torch.stack(rows) if rows else torch.empty(0, VOCAB_SIZE)

    def _read(self, item: ScheduledSequence) -> list[int]:
        end = item.start + item.num_new_tokens
        return [self.store.blocks[item.block_table[p // self.block_size]][p % self.block_size] for p in range(end)]


def next_scores(context: Iterable[int]) -> Tensor:
    """Scores [VOCAB_SIZE] that depend on every token of the context and its place."""
    generator = torch.Generator().manual_seed(hash(tuple(context)) % 2**63)
    return torch.randn(VOCAB_SIZE, generator=generator)


def greedy_continuation(prompt: Sequence[int], num_tokens: int) -> list[int]:
    """What a greedy request must produce, computed with no cache at all."""
    context = list(prompt)
    for _ in range(num_tokens):
        context.append(int(next_scores(context).argmax()))
    return context[len(prompt) :]


def hash_engine(config: EngineConfig) -> Engine:
    """An Engine over the hash model. No token ends a text, so lengths are what is asked for."""
    store = TokenStore(config.num_blocks, config.num_cpu_blocks, config.block_size)
    components = EngineComponents(
        tokenizer=ByteTokenizer(),
        runner=HashRunner(store, config.block_size),
        sampler=LogitsSampler(),
        store=store,
        vocab_size=VOCAB_SIZE,
        info={"model": "hash of the context (tests)"},
    )
    return Engine(config, components)
