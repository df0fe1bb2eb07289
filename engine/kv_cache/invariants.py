"""What must hold after every step, each rule with a name.

The checker folds the trace beside the engine, so it also proves that the log tells the truth: a picture drawn
from the trace and the engine's own tables are compared field by field.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Protocol, runtime_checkable

from engine.kv_cache.manager import KVCacheManager, KVSequence
from engine.trace.events import BlockCopied, BlocksShuffled, BlockSwappedIn, Event, SlotsWritten
from engine.trace.state import CacheState
from engine.trace.trace import Trace


class InvariantError(AssertionError):
    """A rule is broken. `rule` is its name."""

    def __init__(self, rule: str, detail: str) -> None:
        super().__init__(f"{rule}: {detail}")
        self.rule = rule


class InvariantChecker:
    """Remembers how far it has read, so that a check costs the pool's size plus the new events."""

    def __init__(self, kv: KVCacheManager, trace: Trace) -> None:
        self.kv = kv
        self.trace = trace
        self.state = CacheState()
        self._num_read = 0
        self._watch = _watch(kv.store, kv.block_size)

    def check(self, live: list[KVSequence]) -> None:
        """Raises InvariantError naming the first broken rule. `live`: all unfinished sequences."""
        self.check_memory(live)
        self._check_cursors(live)

    def check_progress(self, num_steps_without_token: int, max_steps: int) -> None:
        """Raises InvariantError when no request got a token for `max_steps` steps (Scheduler derives that number)."""
        if 0 < max_steps <= num_steps_without_token:
            detail = f"no request got a token in {num_steps_without_token} steps; one should within {max_steps}"
            raise InvariantError("liveness", detail)

    def check_memory(self, live: list[KVSequence]) -> None:
        """The rules of memory alone: `live` may be kept by hand, with no token left to run."""
        self._read_new_events()
        self._check_free_queue()
        self._check_ref_counts()
        self._check_table_lengths(live)
        self._check_context(live)
        self._check_cached_content()
        self._check_swap_space()
        self._check_log_tells_the_truth(live)
        self._check_memory_follows_log()

    def _read_new_events(self) -> None:
        for event in self.trace.events[self._num_read :]:
            self._check_write(event)
            self.state.apply(event)
            if self._watch:
                self._watch.note(event)
        self._num_read = len(self.trace.events)

    def _check_write(self, event: Event) -> None:
        """No slot is written outside the writer's own blocks, nor in a block with `ref_cnt` above 1."""
        if not isinstance(event, SlotsWritten):
            return
        for slot in event.slots:
            owners = self.state.blocks[slot // self.state.block_size].owners
            if set(owners) != {event.seq_id}:
                references = " and ".join(sorted(owners)) or "no sequence"
                raise InvariantError(
                    "write_in_own_block", f"{event.seq_id} wrote slot {slot} of a block referenced by {references}"
                )

    def _check_free_queue(self) -> None:
        pool = self.kv.pool
        unreferenced = {block.block_id for block in pool.blocks if block.ref_cnt == 0}
        if unreferenced != set(pool.free_block_queue):
            odd = sorted(unreferenced ^ set(pool.free_block_queue))
            raise InvariantError("free_queue", f"blocks {odd} are free or queued, but not both")
        if [block.block_id for block in pool.blocks] != list(range(pool.num_blocks)):
            raise InvariantError("free_queue", "a block carries another block's number")

    def _check_ref_counts(self) -> None:
        references = Counter(block_id for table in self.kv.block_tables.values() for block_id in table)
        for block in self.kv.pool.blocks:
            if block.ref_cnt != (num_tables := references[block.block_id]):
                detail = f"block {block.block_id} has ref_cnt {block.ref_cnt}, and {num_tables} tables reference it"
                raise InvariantError("ref_cnt", detail)

    def _check_table_lengths(self, live: list[KVSequence]) -> None:
        for seq in live:
            swapped = self.kv.swap_space.tables.get(seq.seq_id, [])
            length = len(self.kv.block_tables.get(seq.seq_id, [])) + len(swapped)
            if length != self.kv.num_blocks_for(seq.num_computed_tokens):
                detail = f"{seq.seq_id} has {length} blocks for {seq.num_computed_tokens} computed tokens"
                raise InvariantError("table_length", detail)
        strays = set(self.kv.block_tables) - {seq.seq_id for seq in live}
        if strays:
            raise InvariantError("table_length", f"finished sequences still hold tables: {sorted(strays)}")

    def _check_cursors(self, live: list[KVSequence]) -> None:
        """Each unfinished sequence has a token to run: without one there are no logits, and it would wait for ever."""
        for seq in live:
            if seq.num_computed_tokens >= seq.num_tokens:
                detail = f"{seq.seq_id} has {seq.num_computed_tokens} of its {seq.num_tokens} tokens computed"
                raise InvariantError("token_to_run", f"{detail}, and none left to give the next one")

    def _check_context(self, live: list[KVSequence]) -> None:
        """Whoever follows a table from entry 0 on reads the sequence's own tokens, in order."""
        for seq in live:
            table = self.kv.block_tables.get(seq.seq_id)
            for position in range(seq.num_computed_tokens if table else 0):
                slot = self.kv.slot(seq.seq_id, position)
                held = self.state.blocks[slot // self.kv.block_size].slots[slot % self.kv.block_size]
                if held is None or (held.position, held.token_id) != (position, seq.token_ids[position]):
                    there = f"token {held.position} of {held.seq_id}" if held else "nothing"
                    detail = f"{seq.seq_id} looks for its token {position} in slot {slot} and finds {there}"
                    raise InvariantError("read_own_tokens", detail)

    def _check_cached_content(self) -> None:
        """A cached block holds exactly the tokens it is found by."""
        for block, drawn in zip(self.kv.pool.blocks, self.state.blocks, strict=True):
            if block.node is None:
                continue
            written = tuple(slot.token_id if slot else None for slot in drawn.slots)
            if written != block.node.token_ids:
                detail = f"block {block.block_id} is found by {block.node.token_ids} and holds {written}"
                raise InvariantError("cached_content", detail)

    def _check_swap_space(self) -> None:
        space = self.kv.swap_space
        references = Counter(block_id for table in space.tables.values() for block_id in table)
        if any(count != references[block_id] for block_id, count in enumerate(space.ref_cnts)):
            raise InvariantError("swap_space", f"counts {space.ref_cnts} against tables {space.tables}")
        if len(space.free_blocks) + len(references) != space.num_cpu_blocks:
            raise InvariantError("swap_space", f"{len(space.free_blocks)} free and {len(references)} referenced blocks")

    def _check_log_tells_the_truth(self, live: list[KVSequence]) -> None:
        pool, state = self.kv.pool, self.state
        tables = {s: q.block_table for s, q in state.sequences.items() if q.block_table}
        self._require_equal("block tables", {s: t for s, t in self.kv.block_tables.items() if t}, tables)
        cpu_tables = {s: q.cpu_block_table for s, q in state.sequences.items() if q.cpu_block_table}
        self._require_equal("CPU block tables", {s: t for s, t in self.kv.swap_space.tables.items() if t}, cpu_tables)
        self._require_equal("free queue", list(pool.free_block_queue), list(state.free_block_queue))
        hashes = [block.node.block_hash if block.node else None for block in pool.blocks]
        self._require_equal("cached blocks", hashes, [block.block_hash for block in state.blocks])
        for seq in live:
            logged = state.sequences[seq.seq_id]
            self._require_equal(f"tokens of {seq.seq_id}", seq.token_ids, logged.token_ids)
            self._require_equal(
                f"num_computed_tokens of {seq.seq_id}", seq.num_computed_tokens, logged.num_computed_tokens
            )

    def _require_equal(self, what: str, engine_has: object, log_says: object) -> None:
        if engine_has != log_says:
            raise InvariantError("log_tells_the_truth", f"{what}: engine {engine_has}, log {log_says}")

    def _check_memory_follows_log(self) -> None:
        """Keys and values change only in the slots that the log says were written."""
        changed = self._watch.changed_slots() if self._watch else []
        if changed:
            raise InvariantError("memory_follows_log", f"slots {changed} changed, and no event says so")


def _watch(store: object, block_size: int) -> MemoryWatch | None:
    """None where nothing is stored that could be looked at: a script, or a model made for tests."""
    return MemoryWatch(store, block_size) if isinstance(store, HasFingerprints) else None


@runtime_checkable
class HasFingerprints(Protocol):
    """A memory that can say, slot by slot, whether it is what it was."""

    def fingerprints(self) -> list[int]:
        """One number a slot: the same data, the same number."""
        ...


class MemoryWatch:
    """Remembers the fingerprints of the last look, and which slots were written since, by the log."""

    def __init__(self, store: HasFingerprints, block_size: int) -> None:
        self.store = store
        self.block_size = block_size
        self._known: list[int | None] = []
        """What each slot must still hold; None where the log says that it was written. Empty before the first look."""

    def note(self, event: Event) -> None:
        """Follow one event of the log."""
        if not self._known:
            return
        if isinstance(event, SlotsWritten):
            self._forget(event.slots)
        elif isinstance(event, BlockCopied):
            self._forget(self._slots_of(event.dst_block_id))
        elif isinstance(event, BlockSwappedIn):
            self._forget(self._slots_of(event.block_id))
        elif isinstance(event, BlocksShuffled):
            old = self._known
            self._known = list(old)
            for source, target in enumerate(event.permutation):
                for offset in range(self.block_size):
                    self._known[target * self.block_size + offset] = old[source * self.block_size + offset]

    def changed_slots(self) -> list[int]:
        """Slots that changed since the last call without the log saying so."""
        now = self.store.fingerprints()
        changed = [slot for slot, known in enumerate(self._known) if known is not None and known != now[slot]]
        self._known = list(now)
        return changed

    def _forget(self, slots: Iterable[int]) -> None:
        for slot in slots:
            self._known[slot] = None

    def _slots_of(self, block_id: int) -> range:
        return range(block_id * self.block_size, (block_id + 1) * self.block_size)
