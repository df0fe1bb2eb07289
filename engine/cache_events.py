"""What becomes findable by its content and what no longer is: the events that servers publish, and ours alike.

vLLM and SGLang publish `BlockStored`, `BlockRemoved` and `AllBlocksCleared` without saying where a block lies or whose
it is. Fields that a source does not know are None here: unknown, never guessed. Our own engine knows them all.

`data_parallel_rank`: which of several equal engines behind one server it is; None where there is one engine.
`medium`: which store holds the block, in the server's word ("GPU", "CPU"). `group_idx`: which KV cache group, for
models that keep several.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from engine.event_base import Event, plural

BlockHash = int | str
"""A hash as its source gives it: a whole number, or bytes written as hexadecimal text."""


@dataclass(frozen=True, slots=True)
class BlockStored(Event):
    """A full, computed block becomes findable by `block_hash`.

    block_id, seq_id, logical_index: where it lies and in whose table; None from a server that does not say.
    """

    block_id: int | None
    block_hash: BlockHash
    parent_block_hash: BlockHash | None
    token_ids: tuple[int, ...]
    block_size: int
    seq_id: str | None
    logical_index: int | None
    data_parallel_rank: int | None = None
    medium: str | None = None
    group_idx: int | None = None
    group: ClassVar[str] = "memory"

    def describe(self) -> str:
        tokens = plural(self.block_size, "token")
        if self.block_id is None:
            return f"A block of {tokens} can now be found by its content; where it lies is not known."
        return f"Block {self.block_id} is full and can now be found by its {tokens}."


@dataclass(frozen=True, slots=True)
class BlockRemoved(Event):
    """A cached block's content is given up, because the block is taken for other tokens."""

    block_id: int | None
    block_hash: BlockHash
    data_parallel_rank: int | None = None
    medium: str | None = None
    group_idx: int | None = None
    group: ClassVar[str] = "memory"

    def describe(self) -> str:
        if self.block_id is None:
            return "The cached content of one block is given up; where it lay is not known."
        return f"The cached content of block {self.block_id} is given up."


@dataclass(frozen=True, slots=True)
class AllBlocksCleared(Event):
    """No block is findable any more; free blocks stay free, used ones stay used."""

    data_parallel_rank: int | None = None
    group: ClassVar[str] = "memory"

    def describe(self) -> str:
        return "The prefix cache is emptied."


@dataclass(frozen=True, slots=True)
class MessageReceived(Event):
    """One message of a server's stream: its number, and when the server sent it (seconds since 1970)."""

    sequence: int
    timestamp: float
    data_parallel_rank: int | None = None
    group: ClassVar[str] = "beat"

    def describe(self) -> str:
        return f"Message {self.sequence}{_of_rank(self.data_parallel_rank)} arrives."


@dataclass(frozen=True, slots=True)
class MessagesMissed(Event):
    """Messages `first` to `last` never came: from here on the picture may lack blocks and show some that are gone."""

    first: int
    last: int
    data_parallel_rank: int | None = None
    group: ClassVar[str] = "beat"

    def describe(self) -> str:
        which = f"Message {self.first}" if self.first == self.last else f"Messages {self.first} to {self.last}"
        return f"{which}{_of_rank(self.data_parallel_rank)} never came: the view is partial from here on."


@dataclass(frozen=True, slots=True)
class ServerRestarted(Event):
    """The server counts its messages from the start again: what it held before is gone."""

    data_parallel_rank: int | None = None
    group: ClassVar[str] = "memory"

    def describe(self) -> str:
        return f"The server{_of_rank(self.data_parallel_rank)} has restarted: its cache is empty, the view starts over."


def _of_rank(rank: int | None) -> str:
    return "" if rank is None else f" of rank {rank}"
