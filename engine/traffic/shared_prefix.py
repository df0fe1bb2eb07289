"""What a system prompt costs: the beginning that most requests share, and what caching it saves."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from engine.traffic.blocks import BlockTrace


@dataclass(frozen=True, slots=True)
class SharedPrefix:
    """The longest beginning of whole blocks that at least `share` of the requests have. 0 blocks: there is none."""

    num_blocks: int
    num_tokens: int
    num_requests: int

    @property
    def computed_without_cache(self) -> int:
        """Tokens that computing it for every request takes."""
        return self.num_tokens * self.num_requests

    @property
    def saved_at_most(self) -> int:
        """Tokens that are not computed when it stays cached after the first request."""
        return self.num_tokens * max(self.num_requests - 1, 0)


def shared_prefix(trace: BlockTrace, share: float = 0.5) -> SharedPrefix:
    """Of the contents that at least that share of the requests have, the deepest: it stands for all before it."""
    if not len(trace.contents):
        return SharedPrefix(0, 0, 0)
    counts = np.bincount(trace.contents, minlength=trace.num_contents)
    sizes = np.diff(trace.ends, prepend=0)
    depths = np.arange(len(trace.contents)) - np.repeat(trace.ends - sizes, sizes) + 1
    often = counts[trace.contents] >= max(share * trace.num_requests, 2)
    if not often.any():
        return SharedPrefix(0, 0, 0)
    deepest = int(np.argmax(np.where(often, depths, 0)))
    blocks = int(depths[deepest])
    return SharedPrefix(blocks, blocks * trace.block_size, int(counts[trace.contents[deepest]]))
