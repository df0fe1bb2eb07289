"""From the memory of a GPU to a pool of blocks, to requests at once, and to what runs out first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from engine.capacity.kv_groups import USUAL_BLOCK_SIZE, KVGroups, group_layers
from engine.capacity.model_shape import ModelShape
from engine.model.kv_cache_size import BYTES_PER_GB, room_for_cache

Limit = Literal["weights", "one_request", "max_num_seqs", "blocks", "nothing"]


@dataclass(frozen=True, slots=True)
class Pool:
    """The pool of one server: `num_blocks` on each of its GPUs, and the longest request that it takes."""

    groups: KVGroups
    num_blocks: int
    max_model_len: int

    @property
    def num_tokens(self) -> int:
        """Tokens that fit: blocks times their size; of several groups those of full-length requests, as vLLM prints."""
        if self.groups.num_groups == 1:
            return self.num_blocks * self.groups.block_size
        return int(self.concurrency * self.max_model_len)

    @property
    def concurrency(self) -> float:
        """Requests of `max_model_len` tokens that fit at once: by tokens, or of several groups by blocks."""
        if self.groups.num_groups == 1:
            return self.num_blocks * self.groups.block_size / self.max_model_len
        return self.num_blocks / self.groups.blocks_for(self.max_model_len)

    @property
    def contiguous_requests(self) -> int:
        """Requests at once when each keeps room for `max_model_len` tokens, whatever it needs."""
        return self.num_blocks // self.groups.blocks_for(self.max_model_len)

    def paged_requests(self, num_tokens: int) -> int:
        """Requests of `num_tokens` tokens at once when each takes the blocks it needs."""
        return self.num_blocks // self.groups.blocks_for(num_tokens)

    @property
    def longest_request(self) -> int:
        """Tokens of the longest request that fits when it is alone."""
        low, high = 0, self.max_model_len
        while low < high:
            middle = (low + high + 1) // 2
            low, high = (middle, high) if self.groups.blocks_for(middle) <= self.num_blocks else (low, middle - 1)
        return low


@dataclass(frozen=True, slots=True)
class FirstLimit:
    """What runs out first, and the number of users with whom it does not yet."""

    kind: Limit
    users: int


def pool_of(
    shape: ModelShape,
    *,
    kv_bytes: int,
    max_model_len: int,
    tensor_parallel: int = 1,
    element_bytes: float = 2.0,
    block_size: int = USUAL_BLOCK_SIZE,
    step_tokens: int = 8192,
    state_blocks: int = 1,
) -> Pool:
    """The pool that `kv_bytes` of each GPU hold; the other arguments are those of `group_layers`."""
    groups = group_layers(
        shape,
        tensor_parallel=tensor_parallel,
        element_bytes=element_bytes,
        block_size=block_size,
        step_tokens=step_tokens,
        state_blocks=state_blocks,
    )
    return Pool(groups, max(kv_bytes, 0) // groups.block_bytes, max_model_len)


def first_limit(pool: Pool, users: int, num_tokens: int, max_num_seqs: int) -> FirstLimit:
    """What stops `users` requests of `num_tokens` tokens from running at once, in the order a server meets it."""
    if pool.num_blocks == 0:
        return FirstLimit("weights", 0)
    if pool.concurrency < 1:
        return FirstLimit("one_request", 0)
    paged = pool.paged_requests(num_tokens)
    if users > min(paged, max_num_seqs):
        return FirstLimit("max_num_seqs", max_num_seqs) if max_num_seqs < paged else FirstLimit("blocks", paged)
    return FirstLimit("nothing", min(paged, max_num_seqs))


@dataclass(frozen=True, slots=True)
class GpuMemory:
    """One GPU's memory in bytes: the share a server may fill, and what is left of that for the cache."""

    total: int
    usable: int
    weights: int
    other: int
    kv: int

    @property
    def missing(self) -> int:
        """Bytes by which weights and the rest exceed what the server may fill; 0 when they fit."""
        return max(self.weights + self.other - self.usable, 0)


def gpu_memory(card_gb: float, share: float, weight_bytes: int, other_bytes: int, tensor_parallel: int) -> GpuMemory:
    """Weights are split over the GPUs; `other_bytes`, activations and libraries, each of them needs. Raises ValueError.

    The sum is `room_for_cache` of the lesson "What is cached".
    """
    weights = weight_bytes // tensor_parallel
    usable, kv_bytes = room_for_cache(card_gb, share, weights + other_bytes)
    return GpuMemory(int(card_gb * BYTES_PER_GB), usable, weights, other_bytes, kv_bytes)
