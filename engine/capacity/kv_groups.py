"""Layers in groups that share one pool of blocks, as vLLM's hybrid KV cache manager makes them.

Every group has the same number of layers, so that a block of any of them is equally large: a block id is a place in
that many buffers, and each belongs to one layer of every group. A request takes blocks for each group:

    full, latent   one for every `block_size` tokens
    sliding        those that the window and the tokens of one step reach into
    linear         `state_blocks`, whatever its length

Source: vLLM's design document "Hybrid KV Cache Manager"; block sizes and counts checked against published starts
(tests/capacity/test_published_starts.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from engine.capacity.model_shape import LayerKind, ModelShape

USUAL_BLOCK_SIZE = 16
ALIGNMENT = 16
"""Block sizes of hybrid models are multiples of this."""
_NEARLY_EQUAL = 1.25
"""Kinds whose numbers of layers differ by less are padded to the larger one rather than cut into groups."""


@dataclass(frozen=True, slots=True)
class KVGroups:
    """Groups of `layers_per_group` layers. `groups`: how many of each kind. block_bytes: a block of any, on one GPU."""

    block_size: int
    layers_per_group: int
    groups: Mapping[LayerKind, int]
    block_bytes: int
    window: int | None
    step_tokens: int
    state_blocks: int

    @property
    def num_groups(self) -> int:
        """Groups of all kinds."""
        return sum(self.groups.values())

    def blocks_for(self, num_tokens: int) -> int:
        """Blocks that a request of `num_tokens` tokens takes, of all groups together."""
        return sum(count * self._blocks_of(kind, num_tokens) for kind, count in self.groups.items())

    def _blocks_of(self, kind: LayerKind, num_tokens: int) -> int:
        if kind == "linear":
            return self.state_blocks
        whole = -(-num_tokens // self.block_size)
        if kind == "sliding" and self.window is not None:
            reached = min(self.window - 1 + self.step_tokens, num_tokens)
            return min(-(-reached // self.block_size) + 1, whole)
        return whole


def group_layers(
    shape: ModelShape,
    *,
    tensor_parallel: int = 1,
    element_bytes: float = 2.0,
    block_size: int = USUAL_BLOCK_SIZE,
    step_tokens: int = 8192,
    state_blocks: int = 1,
) -> KVGroups:
    """The groups of a model on one of `tensor_parallel` GPUs.

    element_bytes: of one number of keys and values. step_tokens: `max_num_batched_tokens`. state_blocks: blocks that
    the state of a linear group takes; vLLM took 1 in 0.19, and takes 2 from 0.24 on with prefix caching.
    """
    size = block_size
    kinds = [kind for kind in shape.layers if kind != "linear"]
    largest = max((shape.token_bytes(kind, element_bytes, tensor_parallel) for kind in kinds), default=0)
    if shape.linear is not None and largest:
        state = shape.linear.state_bytes(tensor_parallel)
        size = max(size, -(-state // (ALIGNMENT * largest)) * ALIGNMENT)
    page = size * largest if largest else shape.linear.state_bytes(tensor_parallel) if shape.linear else 0
    fewest, most = min(shape.layers.values()), max(shape.layers.values())
    each = most if most < fewest * _NEARLY_EQUAL else fewest
    groups = {kind: -(-count // each) for kind, count in shape.layers.items()}
    return KVGroups(size, each, groups, page * each, shape.window, step_tokens, state_blocks)
