"""From logits to tokens: greedy, temperature, top-k, top-p, seeds.

Random numbers are a pure function of (request seed, sample index, position): nothing to save when a request is
preempted, swapped or moved to another batch, and the same text whatever else runs beside it.
"""

from __future__ import annotations

from collections.abc import Sequence as Seq
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from engine.sequence import Sequence, SequenceGroup


@dataclass(frozen=True, slots=True)
class Draw:
    """One token wanted: from `row` of the logits, for this sequence of this request."""

    row: int
    group: SequenceGroup
    sequence: Sequence


@dataclass(frozen=True, slots=True)
class Choice:
    """The token chosen, and the natural logarithm of its probability under the model."""

    token_id: int
    logprob: float


class TokenChooser(Protocol):
    """What the engine asks after the model ran."""

    def sample(self, logits: Tensor, draws: Seq[Draw]) -> list[Choice]: ...


class Sampler:
    """The real chooser. Greedy rows are done together; random rows each with their own numbers."""

    def sample(self, logits: Tensor, draws: Seq[Draw]) -> list[Choice]:
        """`logits` [num_logit_rows, vocab_size]; one Choice a draw, in order."""
        if not draws:
            return []
        rows = logits[[draw.row for draw in draws]].float()
        token_ids = rows.argmax(dim=-1)
        for index, draw in enumerate(draws):
            if draw.group.params.temperature > 0:
                token_ids[index] = _random_token(rows[index], draw)
        chosen = rows.gather(1, token_ids[:, None]).squeeze(1)
        logprobs = chosen - torch.logsumexp(rows, dim=-1)
        return [Choice(t, p) for t, p in zip(token_ids.tolist(), logprobs.tolist(), strict=True)]


def _random_token(row: Tensor, draw: Draw) -> int:
    """Sample from the kept probabilities by inverse transform with one uniform number."""
    params = draw.group.params
    scores, token_ids = torch.sort(row / params.temperature, descending=True, stable=True)
    probabilities = torch.softmax(scores, dim=-1)
    probabilities = probabilities[: _num_kept(probabilities, params.top_k, params.top_p)]
    cumulative = torch.cumsum(probabilities.double(), dim=0)
    target = uniform(draw.group.seed, draw.sequence.index, draw.sequence.num_tokens) * cumulative[-1]
    picked = int(torch.searchsorted(cumulative, target, right=True))
    return int(token_ids[min(picked, len(cumulative) - 1)])


def _num_kept(probabilities: Tensor, top_k: int, top_p: float) -> int:
    """How many of the sorted tokens stay: at most top_k, and the fewest whose probabilities reach top_p."""
    kept = min(top_k, len(probabilities)) if top_k else len(probabilities)
    if top_p < 1:
        reached = torch.cumsum(probabilities[:kept], dim=0) >= top_p * probabilities[:kept].sum()
        kept = min(kept, int(reached.int().argmax()) + 1)
    return kept


def uniform(seed: int, index: int, position: int) -> float:
    """A number in [0, 1) that belongs to this seed, sample and position for ever."""
    key = np.array([seed % 2**64, index], dtype=np.uint64)  # a plain list of such numbers would become floats
    return float(np.random.Generator(np.random.Philox(key=key, counter=position)).random())
