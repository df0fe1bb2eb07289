"""The engine's KV cache manager without its scheduler, to compare with `engine.baselines.contiguous.Arena`.

A scene in which requests of given lengths are stored one by one cannot use the scheduler, which runs every request
in every step. Here the caller decides which request is written; pool, block tables and events are the engine's own.
"""

from __future__ import annotations

from collections.abc import Sequence

from engine.baselines.arrivals import Arrival
from engine.i18n import _, counted
from engine.kv_cache.block_pool import BlockPool
from engine.kv_cache.invariants import InvariantChecker
from engine.kv_cache.manager import KVCacheManager
from engine.sequence import Sequence as TokenSequence
from engine.trace.events import (
    RequestAdded,
    RequestAdmitted,
    RequestFinished,
    RequestRefused,
    SequenceFinished,
    TokenSampled,
)
from engine.trace.trace import Trace


class PagedArena:
    """A pool of blocks and the requests that hold some. Everything is written to `trace`, stamped with its step."""

    def __init__(self, num_blocks: int, block_size: int, trace: Trace, free_order: Sequence[int] = ()) -> None:
        self.trace = trace
        self.kv = KVCacheManager(
            BlockPool(num_blocks, block_size, trace, free_order=free_order), enable_prefix_caching=False
        )
        self.residents: dict[str, TokenSequence] = {}
        self._checker = InvariantChecker(self.kv, trace)

    def store(self, arrival: Arrival) -> bool:
        """Write the prompt, then the reply token by token; or write RequestRefused and change nothing else."""
        reason = self.wait_reason(arrival)
        if reason:
            self.trace.append(RequestRefused(self.trace.step, arrival.request_id, reason))
            return False
        self._add(arrival)
        self._write(arrival.request_id)
        for token_id, piece in zip(arrival.output_token_ids, arrival.output_pieces, strict=True):
            self._learn(arrival.request_id, token_id, piece)
            self._write(arrival.request_id)
        return True

    def finish(self, request_id: str) -> None:
        """The request ends and gives every block back. Raises KeyError when it holds none."""
        self.kv.free(self.residents.pop(request_id))
        self.trace.append(SequenceFinished(self.trace.step, request_id, "stop"))
        self.trace.append(RequestFinished(self.trace.step, request_id, "stop"))

    def wait_reason(self, arrival: Arrival) -> str:
        """Why the request cannot be stored; empty when it can."""
        if arrival.request_id in self.residents:
            return _("there is a request named {request_id} already").format(request_id=arrival.request_id)
        need, free = self.kv.num_blocks_for(arrival.num_tokens), self.kv.pool.num_free_blocks
        return (
            counted("it needs {n} block, {free} free", "it needs {n} blocks, {free} free", need, free=free)
            if need > free
            else ""
        )

    def check_invariants(self) -> None:
        """Raises InvariantError with the broken rule named."""
        self._checker.check_memory(list(self.residents.values()))

    def _add(self, arrival: Arrival) -> None:
        name, step = arrival.request_id, self.trace.step
        self.residents[name] = TokenSequence(name, 0, list(arrival.prompt_token_ids), arrival.num_prompt_tokens)
        length = arrival.num_output_tokens
        self.trace.append(
            RequestAdded(step, name, arrival.prompt_token_ids, arrival.pieces, length, num_output_tokens=length)
        )
        self.trace.append(RequestAdmitted(step, name, "waiting"))

    def _learn(self, request_id: str, token_id: int, piece: str) -> None:
        seq = self.residents[request_id]
        self.trace.append(TokenSampled(self.trace.step, request_id, seq.num_tokens, token_id, piece))
        seq.token_ids.append(token_id)

    def _write(self, request_id: str) -> None:
        """Keys and values of every known token that lacks them. There is room: `store` asked before."""
        seq = self.residents[request_id]
        num_new_tokens = seq.num_tokens - seq.num_computed_tokens
        self.kv.allocate_slots(seq, num_new_tokens)
        self.kv.commit(seq, num_new_tokens)
