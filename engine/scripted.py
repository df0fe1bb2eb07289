"""The real engine on a script: words instead of weights.

Lessons need a certain reply, word for word. Only the model is replaced: the scheduler, the block pool, the tables
and the log are the engine's own. A trace made this way says so (`source`: "engine, scripted tokens").
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from engine.config import EngineConfig
from engine.engine import Engine
from engine.parts import EngineParts
from engine.sampler import Choice, Draw
from engine.scheduler import ScheduledSequence
from engine.tokenizer import Tokenizer

Script = Mapping[str, Sequence[str]]
"""The words each sequence will generate, by sequence id: `A`, `A#1`, ..."""


class WordTokenizer(Tokenizer):
    """One token a word, with the blank before it; new words get the next id."""

    bos_token_id = None
    eos_token_ids = ()
    special_tokens: Mapping[str, str] = {}

    def __init__(self) -> None:
        self._words: list[str] = []
        self._ids: dict[str, int] = {}

    @property
    def vocab_size(self) -> int:  # type: ignore[override]
        return max(1, len(self._words))

    def id_of(self, word: str) -> int:
        """The word's token id, made on first use."""
        if word not in self._ids:
            self._ids[word] = len(self._words)
            self._words.append(word)
        return self._ids[word]

    def piece(self, token_id: int) -> bytes:
        return f" {self._words[token_id]}".encode()

    def display(self, token_id: int) -> str:
        return self._words[token_id]

    def is_special(self, token_id: int) -> bool:
        return False

    def _encode(self, text: str, add_special_tokens: bool) -> list[int]:
        return [self.id_of(word) for word in text.split()]


class NoModel:
    """Runs nothing: a row of no scores for every sequence that wants one."""

    def run(self, items: Sequence[ScheduledSequence]) -> Tensor:
        return torch.empty(sum(item.needs_logits for item in items), 0)


class _ScriptReader:
    """Chooses the next word of the script instead of the most probable token."""

    def __init__(self, script: Script, tokenizer: WordTokenizer) -> None:
        self._script = script
        self._tokenizer = tokenizer

    def sample(self, logits: Tensor, draws: Sequence[Draw]) -> list[Choice]:
        return [Choice(self._tokenizer.id_of(self._next_word(draw)), 0.0) for draw in draws]

    def _next_word(self, draw: Draw) -> str:
        words = self._script.get(draw.sequence.seq_id, ())
        at = len(draw.sequence.output_token_ids)
        return words[at] if at < len(words) else "…"


def scripted_engine(config: EngineConfig, script: Script) -> Engine:
    """An Engine that generates the script. `config.model` and the backend settings are not used."""
    tokenizer = WordTokenizer()
    for words in script.values():
        for word in words:
            tokenizer.id_of(word)
    parts = EngineParts(
        tokenizer=tokenizer,
        runner=NoModel(),
        chooser=_ScriptReader(script, tokenizer),
        store=None,
        vocab_size=2**31,
        info={"source": "engine, scripted tokens", "model": "none (scripted words)"},
    )
    return Engine(config, parts)
