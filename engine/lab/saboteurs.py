"""Five ways to break a paged engine. Each breaks exactly one thing, in a scene in which it matters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from torch import Tensor

from engine.config import EngineConfig
from engine.engine import Engine
from engine.kv_cache import PrefixHit
from engine.kv_store import KVStore
from engine.sampling_params import SamplingParams
from engine.sequence import Sequence as TokenSequence

MAX_TOKENS = 12


@dataclass(frozen=True, slots=True)
class Visit:
    """A request that is added when step `after_step` is done (0: before the first)."""

    after_step: int
    prompt: tuple[int, ...]
    params: SamplingParams


@dataclass(frozen=True, slots=True)
class Scene:
    """What both engines are made of and asked. The saboteur strikes one of them when `strike_after` steps are done."""

    config: EngineConfig
    visits: tuple[Visit, ...]
    strike_after: int


class Saboteur(Protocol):
    """`title` names the deed, `sentence` says what is broken, `meaning` why the reply suffers."""

    title: str
    sentence: str
    meaning: str

    def scene(self, config: EngineConfig, prompt: Sequence[int]) -> Scene:
        """A scene around the prompt, shortened where need be. Raises ValueError when the prompt is too short for it."""
        ...

    def strike(self, engine: Engine) -> None: ...


class SwapTableEntries:
    title = "Swap two table entries"
    sentence = "The first and the last entry of A's block table change places; no key or value moves."
    meaning = (
        "A looks for its first tokens in its last block, which is not full: some tokens are never read, and empty "
        "slots are. (Had both blocks been full, the same keys would be read in another order. They carry their "
        "positions, so the reply would not change, though the table would be just as wrong.)"
    )

    def scene(self, config: EngineConfig, prompt: Sequence[int]) -> Scene:
        """After two steps the prompt and one token are written, and the last block must not be full."""
        length = len(prompt) - ((len(prompt) + 1) % config.block_size == 0)
        _require(config.block_size > 1, "blocks of at least 2 slots")
        _require(length >= config.block_size, f"a prompt of more than {config.block_size} tokens")
        return Scene(_without_swap(config), (Visit(0, tuple(prompt[:length]), _greedy()),), strike_after=2)

    def strike(self, engine: Engine) -> None:
        table = engine.kv.block_tables["A"]
        table[0], table[-1] = table[-1], table[0]


class SkipCopyOnWrite:
    title = "Skip a copy-on-write"
    sentence = "Two samples share a half-filled block, and both write on in it as if it were their own."
    meaning = (
        "Both write into the same slot. One sample's token overwrites the other's, which then reads it as its own."
    )

    def scene(self, config: EngineConfig, prompt: Sequence[int]) -> Scene:
        length = len(prompt) - (len(prompt) % config.block_size == 0)
        _require(config.block_size > 1, "blocks of at least 2 slots")
        _require(length >= 1, "a prompt of at least 2 tokens")
        return Scene(_forking(config), (Visit(0, tuple(prompt[:length]), _two_samples()),), strike_after=0)

    def strike(self, engine: Engine) -> None:
        def never_shared(_seq: TokenSequence, _table: list[int]) -> bool:
            return False

        _swap_method(engine.kv, "_writes_shared_block", never_shared)


class FreeSharedBlockEarly:
    title = "Free a shared block early"
    sentence = "The first block that two samples share goes back to the free queue while both still read it."
    meaning = "Request B takes the block and writes its own prompt into it. The samples go on reading, and find B's."

    def scene(self, config: EngineConfig, prompt: Sequence[int]) -> Scene:
        _require(len(prompt) >= config.block_size, f"a prompt of at least {config.block_size} tokens")
        other = tuple(reversed(prompt))
        visits = (Visit(0, tuple(prompt), _two_samples()), Visit(2, other, _greedy()))
        return Scene(_forking(config), visits, strike_after=2)

    def strike(self, engine: Engine) -> None:
        pool = engine.kv.pool
        block = pool.blocks[engine.kv.block_tables["A"][0]]
        while block.ref_cnt:
            pool.drop_holder(block)


class ShiftSlot:
    title = "Shift a slot by one"
    sentence = "From now on every key and value is written one slot behind the place that the table gives it."
    meaning = "The newest token's keys and values are never where attention looks for them; it reads what was there."

    def scene(self, config: EngineConfig, prompt: Sequence[int]) -> Scene:
        return Scene(_without_swap(config), (Visit(0, tuple(prompt), _greedy()),), strike_after=2)

    def strike(self, engine: Engine) -> None:
        store = engine.parts.store
        assert isinstance(store, KVStore)
        write = store.backend.rotary_write_kv

        def write_shifted(
            qkv: Tensor, cos: Tensor, sin: Tensor, key_cache: Tensor, value_cache: Tensor, slot_mapping: Tensor
        ) -> Tensor:
            num_slots = key_cache.shape[0] * key_cache.shape[1]
            return write(qkv, cos, sin, key_cache, value_cache, (slot_mapping + 1) % num_slots)

        store.backend = replace(store.backend, rotary_write_kv=write_shifted)


class PrefixHitCoversLastToken:
    title = "Let a prefix hit cover the last token"
    sentence = "A prompt that is wholly in the prefix cache counts as computed, its last token included."
    meaning = "B has nothing left to compute, so there are no scores to choose its first token from. It waits for ever."

    def scene(self, config: EngineConfig, prompt: Sequence[int]) -> Scene:
        """The prompt must end where a block ends, for only full blocks are found."""
        length = len(prompt) // config.block_size * config.block_size
        _require(length > 0, f"a prompt of at least {config.block_size} tokens")
        whole = tuple(prompt[:length])
        config = replace(_without_swap(config), enable_prefix_caching=True)
        return Scene(config, (Visit(0, whole, _greedy()), Visit(2, whole, _greedy())), strike_after=0)

    def strike(self, engine: Engine) -> None:
        find_prefix = engine.kv.find_prefix

        def find_whole_prompt(seq: TokenSequence) -> PrefixHit:
            longer = seq.fork(seq.seq_id, seq.index)
            longer.token_ids.append(0)
            return find_prefix(longer)

        _swap_method(engine.kv, "find_prefix", find_whole_prompt)


SABOTEURS: tuple[Saboteur, ...] = (
    SwapTableEntries(),
    SkipCopyOnWrite(),
    FreeSharedBlockEarly(),
    ShiftSlot(),
    PrefixHitCoversLastToken(),
)


def _greedy() -> SamplingParams:
    return SamplingParams(max_tokens=MAX_TOKENS, ignore_eos=True)


def _two_samples() -> SamplingParams:
    return SamplingParams(max_tokens=MAX_TOKENS, ignore_eos=True, n=2, temperature=1.0, seed=0)


def _without_swap(config: EngineConfig) -> EngineConfig:
    return replace(config, preemption_mode="recompute", num_cpu_blocks=0)


def _forking(config: EngineConfig) -> EngineConfig:
    """Sharing by fork alone, as in the paper: a freed block is the next one to be taken."""
    return replace(_without_swap(config), enable_prefix_caching=False, parallel_sampling="fork")


def _require(is_met: bool, what: str) -> None:
    if not is_met:
        raise ValueError(f"This experiment needs {what}.")


def _swap_method(owner: object, name: str, method: Any) -> None:
    """Put a faulty method in the place of a sound one, on this one object."""
    setattr(owner, name, method)
