"""From logits to tokens: greedy, temperature, top-k, top-p, seeds.

Random numbers are a pure function of (request seed, sample index, position): nothing to save when a request is
preempted, swapped or moved to another batch, and the same text from the same logits. That logits are the same bits
whatever else runs is what EngineConfig.batch_invariant promises; without it they are the same to rounding.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from engine.model.device import to_device
from engine.sequence import Sequence as TokenSequence
from engine.sequence import SequenceGroup
from engine.trace.record import record
from kernels.argmax_logsumexp.reference import argmax_logsumexp
from kernels.interface import ArgmaxLogsumexp


@record
class SampleRequest:
    """One token to sample: from `row` of the logits, for this sequence of this request."""

    row: int
    group: SequenceGroup
    sequence: TokenSequence


@record
class SampledToken:
    """The sampled token, and the natural logarithm of its probability under the model."""

    token_id: int
    logprob: float


class Sampler(Protocol):
    """Turns logits [num_logit_rows, vocab_size] into one SampledToken a request, in order."""

    def sample(self, logits: Tensor, requests: Sequence[SampleRequest]) -> list[SampledToken]:
        """`logits` [num_logit_rows, vocab_size] -> one SampledToken a request, in order."""
        ...


class LogitsSampler:
    """Samples all rows together on the logits' device; one small tensor of results is copied to the CPU."""

    def __init__(self, argmax_logsumexp: ArgmaxLogsumexp = argmax_logsumexp) -> None:
        """`argmax_logsumexp`: the implementation of the backend in use."""
        self._argmax_logsumexp = argmax_logsumexp

    def sample(self, logits: Tensor, requests: Sequence[SampleRequest]) -> list[SampledToken]:
        """`logits` [num_logit_rows, vocab_size] -> one SampledToken a request, in order."""
        if not requests:
            return []
        rows = _rows(logits, [request.row for request in requests]).float()
        sampled = self._argmax_logsumexp(rows)
        random_rows = [i for i, request in enumerate(requests) if not request.group.params.is_greedy]
        if random_rows:
            mine = _rows(rows, random_rows)
            token_ids = _sample_random(mine, [requests[i] for i in random_rows])[:, None]
            index = to_device(torch.tensor(random_rows), logits.device)
            sampled[:, :2].index_copy_(0, index, torch.cat([token_ids.double(), mine.gather(1, token_ids)], dim=1))
        found: list[list[float]] = sampled.tolist()
        return [SampledToken(int(token_id), logit - log_sum_exp) for token_id, logit, log_sum_exp in found]


def _rows(tensor: Tensor, indices: list[int]) -> Tensor:
    """[num_rows, vocab_size] -> [len(indices), vocab_size]; the tensor itself, uncopied, when that is all its rows."""
    if indices == list(range(len(tensor))):
        return tensor
    return tensor.index_select(0, to_device(torch.tensor(indices), tensor.device))


def _sample_random(rows: Tensor, requests: Sequence[SampleRequest]) -> Tensor:
    """Inverse transform sampling over top-k and top-p, one uniform number a row.

    `rows` [num_requests, vocab_size] float32 logits -> token ids [num_requests] int64.
    """

    def column(values: list[float]) -> Tensor:
        """[num_requests, 1] float64."""
        return to_device(torch.tensor(values, dtype=torch.float64)[:, None], rows.device)

    params = [request.group.params for request in requests]
    numbers = column([uniform(r.group.seed, r.sequence.index, r.sequence.num_tokens) for r in requests])
    # Dividing in float32, as for one row alone, keeps a seed's tokens what they were.
    scores, token_ids = torch.sort(rows / column([p.temperature for p in params]).float(), descending=True, stable=True)
    probabilities = torch.softmax(scores, dim=-1)
    vocab_size = rows.shape[1]
    top_k = column([min(p.top_k, vocab_size) if p.top_k else vocab_size for p in params]).long()
    # In float64: a GPU adds one row and several rows in another order, which float32 would show in where top-p cuts.
    cumulative = torch.cumsum(probabilities.double(), dim=-1)
    last = _num_kept(cumulative, top_k, column([p.top_p for p in params])) - 1
    targets = numbers * cumulative.gather(1, last)
    picked = torch.minimum(torch.searchsorted(cumulative, targets, right=True), last)
    return token_ids.gather(1, picked).squeeze(1)


def _num_kept(cumulative: Tensor, top_k: Tensor, top_p: Tensor) -> Tensor:
    """How many of the sorted tokens stay: at most top_k, and the fewest whose probabilities reach top_p.

    `cumulative` [rows, vocab_size] float64: the sums of their probabilities up to each. `top_k`, `top_p` and the result
    [rows, 1]; top_p 1 keeps all of top_k.
    """
    inside = torch.arange(cumulative.shape[1], device=cumulative.device) < top_k
    short = cumulative < top_p.float() * cumulative.gather(1, top_k - 1)
    reached = (short & inside).sum(dim=-1, keepdim=True) + 1
    return torch.where(top_p < 1, torch.minimum(reached, top_k), top_k)


def uniform(seed: int, index: int, position: int) -> float:
    """A number in [0, 1) that belongs to this seed, sample and position for ever."""
    key = np.array([seed % 2**64, index], dtype=np.uint64)  # a plain list of such numbers would become floats
    return float(np.random.Generator(np.random.Philox(key=key, counter=position)).random())
