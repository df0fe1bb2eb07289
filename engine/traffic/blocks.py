"""Prompts as numbers of blocks: equal numbers are equal content with equal content before it, as in the prefix cache.

Only full blocks of a prompt can be found again, so only they have a number. What a request generates is counted in
blocks, too, and is found by nobody: a file does not say which reply a later prompt quotes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engine.i18n import _
from engine.traffic.formats import HASH_BLOCK, Traffic

Numbers = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class BlockTrace:
    """`contents` [num_full_prompt_blocks]: 0 to `num_contents` - 1, request after request, to `ends` [num_requests].

    findable [num_requests]: full blocks a request may find; one token is always computed. full, held [num_requests]:
    blocks it fills, and blocks it holds at its largest, with what it generates.
    """

    block_size: int
    contents: Numbers
    ends: Numbers
    findable: Numbers
    full: Numbers
    held: Numbers
    num_contents: int
    num_prompt_tokens: int

    @property
    def num_requests(self) -> int:
        """Requests of the traffic."""
        return len(self.ends)

    @property
    def largest(self) -> int:
        """Blocks of the largest request: a smaller pool refuses it."""
        return int(self.held.max(initial=0))


def block_sizes_of(traffic: Traffic) -> tuple[int, ...]:
    """The block sizes that a traffic can be counted in: hash ids say nothing of blocks smaller than theirs."""
    return (HASH_BLOCK, 2 * HASH_BLOCK, 4 * HASH_BLOCK) if traffic.hashed else (16, 32, 64, 128, 256)


def block_trace(traffic: Traffic, block_size: int) -> BlockTrace:
    """The blocks of every request. Raises ValueError for hash ids and a size that is no multiple of theirs."""
    prompt = np.frombuffer(traffic.num_prompt, np.int64) if len(traffic) else np.empty(0, np.int64)
    output = np.frombuffer(traffic.num_output, np.int64) if len(traffic) else np.empty(0, np.int64)
    written = prompt + output - 1
    full_prompt = prompt // block_size
    ends = np.cumsum(full_prompt)
    contents, count = _hashed(traffic, block_size, full_prompt) if traffic.hashed else _hash_tokens(traffic, block_size)
    return BlockTrace(
        block_size=block_size,
        contents=contents,
        ends=ends,
        findable=(prompt - 1) // block_size,
        full=written // block_size,
        held=-(-written // block_size),
        num_contents=count,
        num_prompt_tokens=int(prompt.sum()),
    )


def _hashed(traffic: Traffic, block_size: int, full: Numbers) -> tuple[Numbers, int]:
    """Every k-th id of a row: it stands for all before it, too."""
    if block_size % HASH_BLOCK:
        raise ValueError(_("Hash ids stand for {size} tokens: take a multiple of it.").format(size=HASH_BLOCK))
    each = block_size // HASH_BLOCK
    ids = np.frombuffer(traffic.items, np.int64)
    begins = np.concatenate([[0], np.frombuffer(traffic.ends, np.int64)[:-1]])
    rows = np.repeat(begins, full)
    places = np.arange(len(rows)) - np.repeat(np.cumsum(full) - full, full)
    distinct, contents = np.unique(ids[rows + (places + 1) * each - 1], return_inverse=True)
    return contents.astype(np.int64), len(distinct)


def _hash_tokens(traffic: Traffic, block_size: int) -> tuple[Numbers, int]:
    """Numbers by the tokens themselves, behind the number of the block before: no hash can be wrong."""
    known: dict[tuple[int, bytes], int] = {}
    contents: list[int] = []
    for index in range(len(traffic)):
        tokens, parent = traffic.items_of(index), -1
        for start in range(0, len(tokens) - block_size + 1, block_size):
            key = (parent, tokens[start : start + block_size].tobytes())
            parent = known.setdefault(key, len(known))
            contents.append(parent)
    return np.array(contents, np.int64), len(known)
