"""The real engine on a script of words instead of a model, and the helpers that scenes run it with.

A lesson needs one reply, word for word. Only the model and the sampler are replaced: the scheduler, the block pool,
the block tables and the event log are the engine's own. The trace's `source` is "engine, scripted tokens".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from torch import Tensor

from engine.components import EngineComponents
from engine.config import EngineConfig, ParallelSampling
from engine.engine import Engine
from engine.model.tokenizer import Tokenizer
from engine.runner import NoModel
from engine.sampler import SampledToken, SampleRequest
from engine.sampling_params import SamplingParams

Script = Mapping[str, Sequence[str]]
"""The words each sequence will generate, by sequence id: `A`, `A#1`, ..."""


class WordTokenizer(Tokenizer):
    """One token a word, with the space before it; new words get the next id."""

    bos_token_id = None
    eos_token_ids = ()
    special_tokens: Mapping[str, str] = {}

    def __init__(self) -> None:
        self._words: list[str] = []
        self._ids: dict[str, int] = {}

    @property
    def vocab_size(self) -> int:  # type: ignore[override]
        """How many words have an id so far, at least 1."""
        return max(1, len(self._words))

    def id_of(self, word: str) -> int:
        """The word's token id, made on first use."""
        if word not in self._ids:
            self._ids[word] = len(self._words)
            self._words.append(word)
        return self._ids[word]

    def piece(self, token_id: int) -> bytes:
        return f" {self._words[token_id]}".encode() if token_id < len(self._words) else b""

    def display(self, token_id: int) -> str:
        return super().display(token_id).removeprefix(" ")

    def is_special(self, token_id: int) -> bool:
        return False

    def _encode(self, text: str, add_special_tokens: bool) -> list[int]:
        return [self.id_of(word) for word in text.split()]


class _ScriptReader:
    """A sampler that returns the next word of the script."""

    def __init__(self, script: Script, tokenizer: WordTokenizer) -> None:
        self._script = script
        self._tokenizer = tokenizer

    def sample(self, logits: Tensor, requests: Sequence[SampleRequest]) -> list[SampledToken]:
        return [SampledToken(self._tokenizer.id_of(self._next_word(request)), 0.0) for request in requests]

    def _next_word(self, request: SampleRequest) -> str:
        words = self._script.get(request.sequence.seq_id, ())
        at = len(request.sequence.output_token_ids)
        return words[at] if at < len(words) else "…"


def scripted_engine(config: EngineConfig, script: Script) -> Engine:
    """An Engine that generates the script. `config.model` and the backend settings are not used."""
    tokenizer = WordTokenizer()
    for words in script.values():
        for word in words:
            tokenizer.id_of(word)
    components = EngineComponents(
        tokenizer=tokenizer,
        runner=NoModel(),
        sampler=_ScriptReader(script, tokenizer),
        store=None,
        vocab_size=2**31,
        info={"source": "engine, scripted tokens", "model": "none (scripted words)"},
    )
    return Engine(config, components)


def blocks_for(num_tokens: int, block_size: int) -> int:
    """Blocks that hold `num_tokens` tokens."""
    return -(-num_tokens // block_size)


def scene_config(
    *,
    block_size: int,
    num_blocks: int,
    longest: int,
    free_order: Sequence[int] = (),
    way: ParallelSampling = "fork",
) -> EngineConfig:
    """The config of a scene whose requests may reach `longest` tokens and not finish, so that they keep their blocks.

    `way`: how samples share blocks. The prefix cache is on for "prefix_cache" only: the paper's fork needs none.
    """
    return EngineConfig(
        block_size=block_size,
        num_blocks=num_blocks,
        max_num_batched_tokens=max(16, 2 * longest),
        max_model_len=longest + 1,
        enable_prefix_caching=way == "prefix_cache",
        parallel_sampling=way,
        free_order=tuple(free_order),
    )


def add(engine: Engine, prompt: Sequence[str], *, num_output_tokens: int, n: int = 1) -> str:
    """Add a request that still runs when `num_output_tokens` tokens are sampled. Returns its id."""
    return engine.add_request(" ".join(prompt), SamplingParams(max_tokens=num_output_tokens + 1, n=n))


def play(engine: Engine, num_steps: int) -> None:
    """Run `num_steps` steps. Raises InvariantError for the first after which an invariant does not hold."""
    for _index in range(num_steps):
        engine.step()
        engine.check_invariants()


def play_to_the_end(engine: Engine) -> None:
    """Run steps until every request has finished. Raises InvariantError as `play` does."""
    while engine.has_unfinished_requests():
        play(engine, 1)
