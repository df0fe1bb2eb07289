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
from engine.tensors import to_device
from kernels.best_token.reference import best_token
from kernels.interface import BestToken


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
    """The real chooser. All rows are worked on together where the logits lie; only what was chosen comes back."""

    def __init__(self, best_token: BestToken = best_token) -> None:
        """`best_token`: the twin of the backend in use."""
        self._best_token = best_token

    def sample(self, logits: Tensor, draws: Seq[Draw]) -> list[Choice]:
        """`logits` [num_logit_rows, vocab_size]; one Choice a draw, in order."""
        if not draws:
            return []
        rows = _rows(logits, [draw.row for draw in draws]).float()
        token_ids, log_sum_exp = self._best_token(rows)
        random = [i for i, draw in enumerate(draws) if draw.group.params.temperature > 0]
        if random:
            chosen_rows = _rows(rows, random)
            index = to_device(torch.tensor(random), logits.device)
            token_ids.index_copy_(0, index, _random_tokens(chosen_rows, [draws[i] for i in random]))
        logprobs = rows.gather(1, token_ids[:, None]).squeeze(1) - log_sum_exp
        # One tensor, so that a GPU is waited for once; float64 holds both exactly.
        pairs: list[list[float]] = torch.stack([token_ids.double(), logprobs.double()], dim=1).tolist()
        return [Choice(int(token_id), logprob) for token_id, logprob in pairs]


def _rows(tensor: Tensor, wanted: list[int]) -> Tensor:
    """The rows `wanted`, or the tensor itself where that is all of them in order."""
    if wanted == list(range(len(tensor))):
        return tensor
    return tensor.index_select(0, to_device(torch.tensor(wanted), tensor.device))


def _random_tokens(rows: Tensor, draws: Seq[Draw]) -> Tensor:
    """Sample each row from its kept probabilities by inverse transform with one uniform number: [num_draws] int64."""

    def column(values: list[float]) -> Tensor:
        return to_device(torch.tensor(values, dtype=torch.float64)[:, None], rows.device)

    params = [draw.group.params for draw in draws]
    numbers = column([uniform(draw.group.seed, draw.sequence.index, draw.sequence.num_tokens) for draw in draws])
    # Dividing in float32, as for one row alone, keeps a seed's tokens what they were.
    scores, token_ids = torch.sort(rows / column([p.temperature for p in params]).float(), descending=True, stable=True)
    probabilities = torch.softmax(scores, dim=-1)
    vocab_size = rows.shape[1]
    top_k = column([min(p.top_k, vocab_size) if p.top_k else vocab_size for p in params]).long()
    last = _num_kept(probabilities, top_k, column([p.top_p for p in params]).float()) - 1
    cumulative = torch.cumsum(probabilities.double(), dim=-1)
    targets = numbers * cumulative.gather(1, last)
    picked = torch.minimum(torch.searchsorted(cumulative, targets, right=True), last)
    return token_ids.gather(1, picked).squeeze(1)


def _num_kept(probabilities: Tensor, top_k: Tensor, top_p: Tensor) -> Tensor:
    """How many of the sorted tokens stay: at most top_k, and the fewest whose probabilities reach top_p.

    `probabilities` [rows, vocab_size], `top_k`, `top_p` and the result [rows, 1]; top_p 1 keeps all of top_k.
    """
    inside = torch.arange(probabilities.shape[1], device=probabilities.device) < top_k
    kept = probabilities * inside
    short = torch.cumsum(kept, dim=-1) < top_p * kept.sum(dim=-1, keepdim=True)
    reached = (short & inside).sum(dim=-1, keepdim=True) + 1
    return torch.where(top_p < 1, torch.minimum(reached, top_k), top_k)


def uniform(seed: int, index: int, position: int) -> float:
    """A number in [0, 1) that belongs to this seed, sample and position for ever."""
    key = np.array([seed % 2**64, index], dtype=np.uint64)  # a plain list of such numbers would become floats
    return float(np.random.Generator(np.random.Philox(key=key, counter=position)).random())
