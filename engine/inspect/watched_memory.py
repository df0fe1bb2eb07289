"""Watch every read and write of an engine's KV memory, and say which reads found something else than they look for.

The watch stands at the two places where data really moves: in front of the kernels that write and copy, and around
the runner, whose block tables say what attention reads. It asks neither the log nor the block pool, so it also sees
what they do not know.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from torch import Tensor

from engine.components import EngineComponents
from engine.i18n import _
from engine.kv_cache.manager import slots_of
from engine.model.kv_store import KVStore
from engine.scheduler import ScheduledSequence


class Written(NamedTuple):
    """What a slot holds. `context` stands for the token and all before it: keys and values depend on them all."""

    seq_id: str
    position: int
    token_id: int
    context: int


@dataclass(frozen=True, slots=True)
class WrongRead:
    """In step `step`, attention of `seq_id` looked for its token `position` in a slot that holds another, or none."""

    step: int
    seq_id: str
    position: int
    block_id: int
    slot: int
    wanted_token_id: int
    found: Written | None


class WatchedMemory:
    """Build an engine from `components`; set `step` before each of its steps; read `wrong_reads` behind it."""

    def __init__(self, components: EngineComponents) -> None:
        """Raises ValueError for components whose memory is not a KVStore: there are no kernels to stand in front of."""
        if not isinstance(components.store, KVStore):
            raise ValueError(_("Only an engine with real keys and values can be watched."))
        self.step = 0
        self.wrong_reads: list[WrongRead] = []
        self.components = replace(components, runner=self)
        self._inner = components.runner
        self._block_size = components.store.block_size
        self._slots: dict[int, Written] = {}
        self._batch: list[Written] = []
        self._kernels = components.store.backend
        components.store.backend = replace(self._kernels, rotary_write_kv=self._write, copy_blocks=self._copy_blocks)

    def run(self, items: Sequence[ScheduledSequence]) -> Tensor:
        """The wrapped runner's logits [num_logit_rows, vocab_size]. Reads are compared after all writes."""
        self._batch = [token for item in items for token in _tokens_of(item)[item.start :]]
        logits = self._inner.run(items)
        self.wrong_reads += [wrong for item in items for wrong in self._wrong_reads(item)]
        return logits

    def _write(
        self, qkv: Tensor, cos: Tensor, sin: Tensor, key_cache: Tensor, value_cache: Tensor, slot_mapping: Tensor
    ) -> Tensor:
        """rotary_write_kv (kernels/interface.py), which also records the token of each slot."""
        for slot, token in zip(slot_mapping.tolist(), self._batch, strict=True):
            self._slots[slot] = token
        return self._kernels.rotary_write_kv(qkv, cos, sin, key_cache, value_cache, slot_mapping)

    def _copy_blocks(self, caches: Sequence[Tensor], src_to_dst: Tensor) -> None:
        """copy_blocks (kernels/interface.py), which also moves the recorded tokens."""
        for source, target in src_to_dst.tolist():
            for offset in range(self._block_size):
                if (held := self._slots.get(source * self._block_size + offset)) is not None:
                    self._slots[target * self._block_size + offset] = held
        self._kernels.copy_blocks(caches, src_to_dst)

    def _wrong_reads(self, item: ScheduledSequence) -> Iterator[WrongRead]:
        wanted = _tokens_of(item)
        slots = slots_of(item.block_table, 0, len(wanted), self._block_size)
        for token, slot in zip(wanted, slots, strict=True):
            found = self._slots.get(slot)
            if found is None or (found.position, found.context) != (token.position, token.context):
                block_id = slot // self._block_size
                yield WrongRead(self.step, token.seq_id, token.position, block_id, slot, token.token_id, found)


def _tokens_of(item: ScheduledSequence) -> list[Written]:
    """The tokens that the item's last query sees, its own included."""
    tokens: list[Written] = []
    context = 0
    for position, token_id in enumerate(item.sequence.token_ids[: item.start + item.num_new_tokens]):
        context = hash((context, token_id))
        tokens.append(Written(item.sequence.seq_id, position, token_id, context))
    return tokens
