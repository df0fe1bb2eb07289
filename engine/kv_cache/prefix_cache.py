"""The content of full blocks as a chain: these tokens, behind that parent, behind its parent.

Keys and values of a block depend on every token before it, so equal tokens are equal content only when the
whole chain is equal. Nodes are immutable and shared: a chain costs one node a block.
"""

from __future__ import annotations

import hashlib
from array import array
from dataclasses import dataclass


def hash_block_tokens(parent_hash: int | None, token_ids: tuple[int, ...]) -> int:
    """A 64-bit hash of one block's tokens chained to its parent's hash; the same in every process."""
    digest = hashlib.blake2b(array("q", token_ids).tobytes(), digest_size=8, key=str(parent_hash).encode())
    return int.from_bytes(digest.digest(), "big")


@dataclass(frozen=True, slots=True, eq=False)
class PrefixNode:
    """The content of one full block. Equal content is decided by `has_parent` and `token_ids`, never by hash alone."""

    parent: PrefixNode | None
    token_ids: tuple[int, ...]
    block_hash: int

    def has_parent(self, other: PrefixNode | None) -> bool:
        """Whether the chain above this node equals `other`'s chain, token by token; shared nodes end the walk."""
        mine = self.parent
        while mine is not other:
            if mine is None or other is None or mine.token_ids != other.token_ids:
                return False
            mine, other = mine.parent, other.parent
        return True
