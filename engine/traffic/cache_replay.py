"""The same requests through the engine: its KV cache manager one at a time, or the whole engine with many at once.

There is no model: the scheduler, the block pool and the prefix cache are the engine's own, tokens are made up. What is
counted is read from the events that the engine wrote.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from torch import Tensor

from engine.components import EngineComponents
from engine.config import EngineConfig
from engine.engine import Engine
from engine.kv_cache.block_pool import BlockPool
from engine.kv_cache.manager import KVCacheManager
from engine.model.tokenizer import ByteTokenizer
from engine.runner import NoModel
from engine.sampler import SampledToken, SampleRequest
from engine.sampling_params import SamplingParams
from engine.sequence import Sequence as TokenSequence
from engine.trace.events import BlockRemoved, BlockShared, RequestPreempted
from engine.trace.trace import Trace
from engine.traffic.formats import HASH_BLOCK, Traffic

_OWN = 2**40
"""Generated tokens are numbered from here, each another one."""


@dataclass(frozen=True, slots=True)
class Counted:
    """What the engine's events say of a replay."""

    hit_blocks: int
    num_evicted: int
    num_preempted: int = 0


def replay_one_at_a_time(traffic: Traffic, block_size: int, num_blocks: int) -> Counted:
    """Every request through the KV cache manager: prompt, reply, end. Raises ValueError when one does not fit."""
    trace = Trace()
    kv = KVCacheManager(BlockPool(num_blocks, block_size, trace))
    unused = _OWN
    for index in range(len(traffic)):
        tokens = _tokens(traffic, index)
        seq = TokenSequence(str(index), 0, tokens, len(tokens))
        kv.allocate_cached_blocks(seq, kv.find_prefix(seq))
        more = traffic.num_output[index] - 1
        seq.token_ids.extend(range(unused, unused + more))
        unused += more
        number = seq.num_tokens - seq.num_computed_tokens
        if not kv.allocate_slots(seq, number):
            raise ValueError(f"request {index} does not fit {num_blocks} blocks")
        kv.commit(seq, number)
        kv.free(seq)
    return _counted(trace)


def replay_together(traffic: Traffic, block_size: int, num_blocks: int, max_num_seqs: int) -> Counted:
    """All requests queued at once, `max_num_seqs` of them running. Traffic of token ids only; blocks of at most 256."""
    config = EngineConfig(
        block_size=block_size,
        num_blocks=num_blocks,
        max_num_seqs=max_num_seqs,
        max_num_batched_tokens=max(2048, max_num_seqs),
        max_model_len=num_blocks * block_size + 1,  # the last token generated is never written
    )
    components = EngineComponents(ByteTokenizer(), NoModel(), _NewTokens(), None, 2**62, {"model": "none (traffic)"})
    engine = Engine(config, components)
    for index in range(len(traffic)):
        params = SamplingParams(max_tokens=traffic.num_output[index], ignore_eos=True)
        engine.add_request(_tokens(traffic, index), params)
    while engine.has_unfinished_requests():
        engine.step()
    return _counted(engine.trace)


class _NewTokens:
    """A sampler that never gives a token twice."""

    def __init__(self) -> None:
        self._next = self._numbers()

    def sample(self, logits: Tensor, requests: Sequence[SampleRequest]) -> list[SampledToken]:
        """A new token each; `logits` [num_requests, 0] is not read."""
        return [SampledToken(next(self._next), 0.0) for _request in requests]

    def _numbers(self) -> Iterator[int]:
        number = _OWN
        while True:
            yield number
            number += 1


def _tokens(traffic: Traffic, index: int) -> list[int]:
    """Token ids of a prompt; of hash ids each stands for as many equal tokens as its block has."""
    items = traffic.items_of(index)
    if not traffic.hashed:
        return items.tolist()
    return [items[place // HASH_BLOCK] for place in range(traffic.num_prompt[index])]


def _counted(trace: Trace) -> Counted:
    events = trace.events
    return Counted(
        sum(isinstance(event, BlockShared) and event.cause == "prefix_cache" for event in events),
        sum(isinstance(event, BlockRemoved) for event in events),
        sum(isinstance(event, RequestPreempted) for event in events),
    )
