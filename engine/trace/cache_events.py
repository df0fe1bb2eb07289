"""What enters and leaves the prefix cache: the KV events that servers publish, and our own.

vLLM and SGLang publish `BlockStored`, `BlockRemoved` and `AllBlocksCleared` without saying where a block lies or whose
it is. Fields that a source does not know are None here: unknown, never guessed. Our own engine knows them all.

`data_parallel_rank`: which of several equal engines behind one server it is; None where there is one engine.
`medium`: which store holds the block, in the server's word ("GPU", "CPU"). `group_idx`: which KV cache group, for
models that keep several.
"""

from __future__ import annotations

from typing import ClassVar

from engine.i18n import _, counted
from engine.trace.event_base import Event
from engine.trace.record import record

BlockHash = int | str
"""A hash as its source gives it: a whole number, or bytes written as hexadecimal text."""


@record
class BlockStored(Event):
    """A full, computed block is cached under `block_hash`.

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
        if self.block_id is None:
            return counted(
                "A block of {n} token is now cached; its place is not known.",
                "A block of {n} tokens is now cached; its place is not known.",
                self.block_size,
            )
        return counted(
            "Block {block_id} is full and now cached: it can be found by its {n} token.",
            "Block {block_id} is full and now cached: it can be found by its {n} tokens.",
            self.block_size,
            block_id=self.block_id,
        )


@record
class BlockRemoved(Event):
    """A cached block's content is evicted, because the block is allocated for other tokens."""

    block_id: int | None
    block_hash: BlockHash
    data_parallel_rank: int | None = None
    medium: str | None = None
    group_idx: int | None = None
    group: ClassVar[str] = "memory"

    def describe(self) -> str:
        if self.block_id is None:
            return _("The cached content of one block is evicted; its place is not known.")
        return _("The cached content of block {block_id} is evicted.").format(block_id=self.block_id)


@record
class AllBlocksCleared(Event):
    """Nothing is cached any more; free blocks stay free, used ones stay used."""

    data_parallel_rank: int | None = None
    group: ClassVar[str] = "memory"

    def describe(self) -> str:
        return _("The prefix cache is emptied.")


@record
class MessageReceived(Event):
    """One message of a server's stream: its number, and when the server sent it (seconds since 1970)."""

    sequence: int
    timestamp: float
    data_parallel_rank: int | None = None
    group: ClassVar[str] = "step"

    def describe(self) -> str:
        if self.data_parallel_rank is None:
            return _("Message {sequence} arrives.").format(sequence=self.sequence)
        return _("Message {sequence} of rank {rank} arrives.").format(
            sequence=self.sequence, rank=self.data_parallel_rank
        )


@record
class MessagesMissed(Event):
    """Messages `first` to `last` never came: from here on the picture may lack blocks and show some that are gone."""

    first: int
    last: int
    data_parallel_rank: int | None = None
    group: ClassVar[str] = "step"

    def describe(self) -> str:
        which = _("Message {first}") if self.first == self.last else _("Messages {first} to {last}")
        sentence = (
            _("{messages} never arrived: the view is partial from here on.")
            if self.data_parallel_rank is None
            else _("{messages} of rank {rank} never arrived: the view is partial from here on.")
        )
        return sentence.format(messages=which.format(first=self.first, last=self.last), rank=self.data_parallel_rank)


@record
class ServerRestarted(Event):
    """The server counts its messages from the start again: what it held before is gone."""

    data_parallel_rank: int | None = None
    group: ClassVar[str] = "memory"

    def describe(self) -> str:
        if self.data_parallel_rank is None:
            return _("The server has restarted: its cache is empty, the view starts over.")
        return _("The server of rank {rank} has restarted: its cache is empty, the view starts over.").format(
            rank=self.data_parallel_rank
        )
