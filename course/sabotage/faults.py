"""Five faults to inject into a paged engine. Each breaks one thing, in a scenario in which it matters.

No torch is imported here, so that a page can name the faults before a model has loaded.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

from engine.config import EngineConfig
from engine.i18n import N_, _
from engine.sampling_params import SamplingParams

if TYPE_CHECKING:
    from torch import Tensor

    from engine.engine import Engine
    from engine.kv_cache.manager import PrefixHit
    from engine.sequence import Sequence as TokenSequence

MAX_TOKENS = 12


@dataclass(frozen=True, slots=True)
class TimedRequest:
    """A request that is added when step `after_step` is done (0: before the first)."""

    after_step: int
    prompt: tuple[int, ...]
    params: SamplingParams


@dataclass(frozen=True, slots=True)
class Scenario:
    """The config and the requests of both engines. One of them gets the fault when `inject_after` steps are done."""

    config: EngineConfig
    requests: tuple[TimedRequest, ...]
    inject_after: int


class Fault(Protocol):
    """`key`: its name in an address. `sentence` says what is broken, `meaning` why the reply suffers."""

    key: str
    title: str
    sentence: str
    meaning: str

    def scenario(self, config: EngineConfig, prompt: Sequence[int]) -> Scenario:
        """Where this fault shows, with the prompt cut to what it needs. Raises ValueError when that is too short."""
        ...

    def inject(self, engine: Engine) -> None:
        """Break this one engine."""
        ...


class SwapTableEntries:
    """Exchange the first and the last entry of a block table."""

    key = "swap"
    title = N_("Swap two table entries")
    sentence = N_("The first and the last entry of A's block table are swapped; no key or value moves.")
    meaning = N_(
        "A looks for its first tokens in its last block, which is not full: some tokens are never "
        "read, and empty slots are read instead. (If both blocks were full, the same keys would be "
        "read in another order. Keys carry their positions, so the reply would not change, although "
        "the table would be just as wrong.)"
    )

    def scenario(self, config: EngineConfig, prompt: Sequence[int]) -> Scenario:
        """After two steps the prompt and one token are written, and the last block must not be full."""
        length = len(prompt) - ((len(prompt) + 1) % config.block_size == 0)
        _require(config.block_size > 1, _("blocks of at least 2 slots"))
        _require(
            length >= config.block_size,
            _("a prompt of more than {num_tokens} tokens").format(num_tokens=config.block_size),
        )
        return Scenario(_without_swap(config), (TimedRequest(0, tuple(prompt[:length]), _greedy()),), inject_after=2)

    def inject(self, engine: Engine) -> None:
        """See Fault."""
        table = engine.kv.block_tables["A"]
        table[0], table[-1] = table[-1], table[0]


class SkipCopyOnWrite:
    """Write into shared blocks without copying them first."""

    key = "copy"
    title = N_("Skip a copy-on-write")
    sentence = N_("Two samples share a partly filled block, and both write into it as if it were private.")
    meaning = N_(
        "Both write into the same slot. One sample's token overwrites the other's, which then reads it as its own."
    )

    def scenario(self, config: EngineConfig, prompt: Sequence[int]) -> Scenario:
        """Two samples that share a last block which is not full."""
        length = len(prompt) - (len(prompt) % config.block_size == 0)
        _require(config.block_size > 1, _("blocks of at least 2 slots"))
        _require(length >= 1, _("a prompt of at least 2 tokens"))
        return Scenario(_forking(config), (TimedRequest(0, tuple(prompt[:length]), _two_samples()),), inject_after=0)

    def inject(self, engine: Engine) -> None:
        """See Fault."""

        def never_shared(_seq: TokenSequence, _table: list[int]) -> bool:
            return False

        _replace_method(engine.kv, "_writes_shared_block", never_shared)


class FreeSharedBlockEarly:
    """Free a block that two block tables still reference."""

    key = "free"
    title = N_("Free a shared block early")
    sentence = N_("The first block that two samples share returns to the free queue while both still read it.")
    meaning = N_(
        "Request B gets the block and writes its own prompt into it. The samples keep reading it and find B's tokens."
    )

    def scenario(self, config: EngineConfig, prompt: Sequence[int]) -> Scenario:
        """Two samples that share a full block, and a later request that takes it."""
        _require(
            len(prompt) >= config.block_size,
            _("a prompt of at least {num_tokens} tokens").format(num_tokens=config.block_size),
        )
        other = tuple(reversed(prompt))
        requests = (TimedRequest(0, tuple(prompt), _two_samples()), TimedRequest(2, other, _greedy()))
        return Scenario(_forking(config), requests, inject_after=2)

    def inject(self, engine: Engine) -> None:
        """See Fault."""
        pool = engine.kv.pool
        block = pool.blocks[engine.kv.block_tables["A"][0]]
        while block.ref_cnt:
            pool.drop_reference(block)


class ShiftSlot:
    """Write keys and values one slot behind the one in `slot_mapping`."""

    key = "shift"
    title = N_("Shift a slot by one")
    sentence = N_("From now on, every key and value is written one slot after the place given by the block table.")
    meaning = N_(
        "The newest token's keys and values are never where attention looks for them; it reads what was there before."
    )

    def scenario(self, config: EngineConfig, prompt: Sequence[int]) -> Scenario:
        """One request; any prompt suits."""
        return Scenario(_without_swap(config), (TimedRequest(0, tuple(prompt), _greedy()),), inject_after=2)

    def inject(self, engine: Engine) -> None:
        """See Fault."""
        from engine.model.kv_store import KVStore  # brings torch, which is there when an engine runs

        store = engine.components.store
        assert isinstance(store, KVStore)
        write = store.backend.rotary_write_kv

        def write_shifted(
            qkv: Tensor, cos: Tensor, sin: Tensor, key_cache: Tensor, value_cache: Tensor, slot_mapping: Tensor
        ) -> Tensor:
            num_slots = key_cache.shape[0] * key_cache.shape[1]
            return write(qkv, cos, sin, key_cache, value_cache, (slot_mapping + 1) % num_slots)

        store.backend = replace(store.backend, rotary_write_kv=write_shifted)


class PrefixHitCoversLastToken:
    """Let a prefix cache hit cover the whole prompt, so that no token is left to compute."""

    key = "prefix"
    title = N_("Let a prefix hit cover the last token")
    sentence = N_("A prompt that is entirely in the prefix cache counts as computed, including its last token.")
    meaning = N_(
        "B has nothing left to compute, so there are no logits to sample its first token from. It waits forever."
    )

    def scenario(self, config: EngineConfig, prompt: Sequence[int]) -> Scenario:
        """The prompt must end where a block ends, for only full blocks are found."""
        length = len(prompt) // config.block_size * config.block_size
        _require(length > 0, _("a prompt of at least {num_tokens} tokens").format(num_tokens=config.block_size))
        whole = tuple(prompt[:length])
        config = replace(_without_swap(config), enable_prefix_caching=True)
        return Scenario(config, (TimedRequest(0, whole, _greedy()), TimedRequest(2, whole, _greedy())), inject_after=0)

    def inject(self, engine: Engine) -> None:
        """See Fault."""
        find_prefix = engine.kv.find_prefix

        def find_whole_prompt(seq: TokenSequence) -> PrefixHit:
            longer = seq.fork(seq.seq_id, seq.index)
            longer.token_ids.append(0)
            return find_prefix(longer)

        _replace_method(engine.kv, "find_prefix", find_whole_prompt)


FAULTS: tuple[Fault, ...] = (
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
        raise ValueError(_("This experiment needs {what}.").format(what=what))


def _replace_method(owner: object, name: str, method: Any) -> None:
    """Put a faulty method in the place of a sound one, on this one object."""
    setattr(owner, name, method)
