"""Beam search: choosing among the continuations of all live beams together.

Pure selection, no blocks and no events; the engine carries the choice out with forks and frees, which is where
the paper's Fig. 9 happens. The rules are those of transformers' `generate(num_beams=k)` with its defaults
(length_penalty 1, early_stopping False), so that results can be held against it:
- candidates: the best `(1 + number of end tokens) * k`, at least `2k`, of all (beam, token) pairs;
- a candidate that ends and is among the best k becomes a hypothesis, scored by log-probability per token;
- a candidate that would repeat a hypothesis word for word, because a stop text cuts both alike, is left out;
- the best k that do not end live on;
- it is over when k hypotheses stand and the best live beam, scored at its length, is no better than the worst.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor


@dataclass(frozen=True, slots=True)
class Candidate:
    """One continuation: beam number (row of the logits), token, and summed log-probability with it."""

    beam: int
    token_id: int
    logprob: float


@dataclass(frozen=True, slots=True)
class BeamChoice:
    """`survivors` live on, best first; `ended` are hypotheses that just ended, best first."""

    survivors: list[Candidate]
    ended: list[Candidate]


StopCheck = Callable[[Candidate], Literal["goes on", "stops", "repeats"]]
"""Whether a stop text ends a candidate, and then whether another hypothesis says the same already."""


def choose_beams(
    logits: Tensor,
    scores: list[float],
    beam_width: int,
    end_token_ids: Collection[int],
    is_last_token: bool,
    stop_check: StopCheck | None = None,
) -> BeamChoice:
    """Rank every continuation of every live beam.

    logits [num_beams, vocab_size]; `scores` [num_beams] the summed log-probabilities so far. With `is_last_token`
    the length limit ends every candidate. `stop_check` is asked about candidates in order of rank, end tokens apart.
    """
    logprobs = torch.log_softmax(logits.float(), dim=-1) + torch.tensor(scores, device=logits.device)[:, None]
    survivors: list[Candidate] = []
    ended: list[Candidate] = []
    rank = 0
    for candidate in _ranked(logprobs, max(2, 1 + len(end_token_ids)) * beam_width):
        is_end = candidate.token_id in end_token_ids
        found = stop_check(candidate) if stop_check and not is_end else "goes on"
        if found == "repeats":
            continue
        rank += 1
        if not (is_end or is_last_token or found == "stops"):
            survivors.append(candidate)
        elif rank <= beam_width:
            ended.append(candidate)
        if len(survivors) == beam_width or (is_last_token and rank == beam_width):
            break
    return BeamChoice(survivors, ended)


def _ranked(logprobs: Tensor, num_candidates: int) -> Iterator[Candidate]:
    """All continuations with any probability, best first: `num_candidates`, which mostly do, then the others.

    `logprobs` [num_beams, vocab_size].
    """
    vocab_size = logprobs.shape[1]
    flat = logprobs.flatten()
    seen: set[int] = set()
    for count in (min(num_candidates, flat.numel()), flat.numel()):
        best, indices = torch.topk(flat, count)
        for index, logprob in zip(indices.tolist(), best.tolist(), strict=True):
            if logprob == -math.inf:
                return
            if index not in seen:
                seen.add(index)
                yield Candidate(index // vocab_size, index % vocab_size, logprob)


def hypothesis_score(logprob: float, num_output_tokens: int) -> float:
    """Log-probability per generated token: how hypotheses of different lengths are compared."""
    return logprob / num_output_tokens


def is_search_over(
    hypothesis_scores: list[float], best_live_logprob: float, num_output_tokens: int, beam_width: int
) -> bool:
    """Whether no live beam can still enter the best `beam_width` hypotheses."""
    if len(hypothesis_scores) < beam_width:
        return False
    worst = sorted(hypothesis_scores, reverse=True)[beam_width - 1]
    return hypothesis_score(best_live_logprob, num_output_tokens) <= worst
