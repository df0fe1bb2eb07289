"""Beam search: choosing among the continuations of all live beams together.

Pure selection, no blocks and no events; the engine carries the choice out with forks and frees, which is where
the paper's Fig. 9 happens. The rules are those of transformers' `generate(num_beams=k)` with its defaults
(length_penalty 1, early_stopping False), so that results can be held against it:
- candidates: the best `(1 + number of end tokens) * k`, at least `2k`, of all (beam, token) pairs;
- a candidate that ends and is among the best k becomes a hypothesis, scored by log-probability per token;
- the best k that do not end live on;
- it is over when k hypotheses stand and the best live beam, scored at its length, is no better than the worst.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

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


def choose_beams(
    logits: Tensor, scores: list[float], beam_width: int, end_token_ids: Collection[int], is_last_token: bool
) -> BeamChoice:
    """Rank every continuation of every live beam.

    logits [num_beams, vocab_size]; `scores` [num_beams] the summed log-probabilities so far. With `is_last_token`
    the length limit ends every candidate.
    """
    logprobs = torch.log_softmax(logits.float(), dim=-1) + torch.tensor(scores, device=logits.device)[:, None]
    num_candidates = min(max(2, 1 + len(end_token_ids)) * beam_width, logprobs.numel())
    best, flat = torch.topk(logprobs.flatten(), num_candidates)
    vocab_size = logits.shape[-1]
    candidates = [
        Candidate(index // vocab_size, index % vocab_size, logprob)
        for index, logprob in zip(flat.tolist(), best.tolist(), strict=True)
    ]
    ends = [is_last_token or c.token_id in end_token_ids for c in candidates]
    ended = [c for c, end in zip(candidates[:beam_width], ends, strict=False) if end]
    survivors = [c for c, end in zip(candidates, ends, strict=True) if not end][:beam_width]
    return BeamChoice(survivors, ended)


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
