"""A bigram model small enough to read: the next word depends on the last word only, by a table of probabilities.

Beam search compares probabilities, so a script of words is not enough for it. Only the model is replaced; the rest is
the engine's own, beam search included.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from course.scripted_engine import WordTokenizer
from engine.components import EngineComponents
from engine.config import EngineConfig
from engine.engine import Engine
from engine.sampler import LogitsSampler
from engine.scheduler import ScheduledSequence

NextWords = Mapping[str, Mapping[str, float]]
"""Last word -> probability of each next word. A word without an entry is followed by ELSE."""

ELSE = "…"


def word_model_engine(config: EngineConfig, next_words: NextWords, prompt: Sequence[str]) -> Engine:
    """An Engine whose model is the table. The vocabulary is the prompt's words, the table's, and ELSE."""
    tokenizer = WordTokenizer()
    for word in [*prompt, *next_words, *(w for row in next_words.values() for w in row), ELSE]:
        tokenizer.id_of(word)
    components = EngineComponents(
        tokenizer=tokenizer,
        runner=_TableRunner(next_words, tokenizer),
        sampler=LogitsSampler(),
        store=None,
        vocab_size=tokenizer.vocab_size,
        info={"source": "engine, scripted probabilities", "model": "none (a table of next words)"},
    )
    return Engine(config, components)


class _TableRunner:
    """Logits are the logarithms of the table's probabilities; a word that is not in the row cannot follow."""

    def __init__(self, next_words: NextWords, tokenizer: WordTokenizer) -> None:
        self._next_words = next_words
        self._tokenizer = tokenizer

    def run(self, items: Sequence[ScheduledSequence]) -> Tensor:
        """[number of items that need logits, vocab_size]"""
        rows = [self._row(item) for item in items if item.needs_logits]
        return torch.stack(rows) if rows else torch.empty(0, self._tokenizer.vocab_size)

    def _row(self, item: ScheduledSequence) -> Tensor:
        last_word = self._tokenizer.display(item.sequence.token_ids[-1])
        row = torch.full((self._tokenizer.vocab_size,), -math.inf)
        for word, probability in self._next_words.get(last_word, {ELSE: 1.0}).items():
            row[self._tokenizer.id_of(word)] = math.log(probability)
        return row
