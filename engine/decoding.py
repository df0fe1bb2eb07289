"""From logits to the next state of every request: samples one by one, beams all together."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

from torch import Tensor

from engine.beam_search import BeamChoice, Candidate, StopCheck, choose_beams, hypothesis_score, is_search_over
from engine.error_isolation import (
    BEAM_SEARCH,
    MODEL,
    NonFiniteLogitsError,
    RequestError,
    RequestErrors,
    attribute_to_request,
    sample_isolated,
)
from engine.sampler import SampledToken, Sampler, SampleRequest
from engine.scheduler import ScheduledSequence
from engine.sequence import Sequence as TokenSequence
from engine.sequence import SequenceGroup
from engine.sequence_manager import SequenceManager


class Decoder:
    """Turns logits into the next token of every sequence. `logits` [num_logit_rows, vocab_size]: a row for each item
    with `needs_logits`, in order.
    """

    def __init__(self, sequences: SequenceManager, sampler: Sampler) -> None:
        self.sequences = sequences
        self.sampler = sampler

    def advance(self, items: Sequence[ScheduledSequence], logits: Tensor) -> RequestErrors:
        """Give every sequence whose last token ran its next token, and finish those that are complete.

        `logits` [num_logit_rows, vocab_size]. Returns the requests for which that failed; the caller ends them.
        """
        errors = RequestErrors()
        sampled = [item for item in items if item.needs_logits]
        rows = {item.sequence: row for row, item in enumerate(sampled)}
        groups = list(dict.fromkeys([item.group for item in sampled]))
        for group in [group for group in groups if group.params.max_tokens == 0]:
            self._finish_empty(group, rows)
            groups.remove(group)
        self._advance_samples([g for g in groups if not g.params.uses_beam_search], rows, logits, errors)
        for group in groups:
            if group.params.uses_beam_search:
                with errors.catch(group):
                    self._advance_beams(group, rows, logits)
        return errors

    def _finish_empty(self, group: SequenceGroup, rows: dict[TokenSequence, int]) -> None:
        """`max_tokens=0`: the prompt is computed and cached, and each of the `n` outputs is empty."""
        first = next(seq for seq in group.live_sequences if seq in rows)
        self._fork_samples(group, first)
        for seq in group.live_sequences:
            self.sequences.finish(seq, "length")

    # -- samples --

    def _advance_samples(
        self, groups: list[SequenceGroup], rows: dict[TokenSequence, int], logits: Tensor, errors: RequestErrors
    ) -> None:
        """Sample every sequence of `groups`. `rows`: sequence -> row of `logits` [num_logit_rows, vocab_size]."""
        requests: list[SampleRequest] = []
        for group in groups:
            for seq in [s for s in group.sequences if s in rows]:
                requests.append(SampleRequest(rows[seq], group, seq))
                requests += [SampleRequest(rows[seq], group, fork) for fork in self._fork_samples(group, seq)]
        for request, sampled in sample_isolated(self.sampler, logits, requests, errors):
            if request.group not in errors.messages:
                try:
                    self._take_sample(request, sampled)
                except RequestError as error:
                    errors.add_error(request.group, error)

    def _take_sample(self, request: SampleRequest, sampled: SampledToken) -> None:
        if not math.isfinite(sampled.logprob):
            raise RequestError(MODEL) from NonFiniteLogitsError(f"log-probability {sampled.logprob}")
        self.sequences.append_token(request.sequence, sampled)
        reason = self.sequences.finish_reason(request.group, request.sequence)
        if reason:
            self.sequences.finish(request.sequence, reason)

    def _fork_samples(self, group: SequenceGroup, seq: TokenSequence) -> list[TokenSequence]:
        """Parallel sampling the paper's way: one prompt was computed, the other samples fork from it now."""
        missing = group.params.n - len(group.sequences)
        if missing <= 0 or seq.output_token_ids:
            return []
        return [self.sequences.fork(seq, group) for _index in range(missing)]

    # -- beams --

    def _advance_beams(self, group: SequenceGroup, rows: dict[TokenSequence, int], logits: Tensor) -> None:
        """One beam search step of one request. `rows`: sequence -> row of `logits` [num_logit_rows, vocab_size]."""
        beams = [seq for seq in group.live_sequences if seq in rows]
        choice = self._choose(group, beams, logits[[rows[seq] for seq in beams]])
        self._keep_hypotheses(group, beams, choice)
        survivors = self._continue_beams(group, beams, choice)
        if not survivors or self._is_over(group, survivors):
            for seq in survivors:
                self.sequences.finish(seq, "beam_pruned")

    def _choose(self, group: SequenceGroup, beams: list[TokenSequence], logits: Tensor) -> BeamChoice:
        """Rank the continuations of `beams`, whose logits are [num_beams, vocab_size]."""
        longest = beams[0].num_tokens + 1
        is_last = (
            longest - beams[0].num_prompt_tokens >= group.params.max_tokens or longest >= self.sequences.max_model_len
        )
        ends = () if group.params.ignore_eos else self.sequences.tokenizer.eos_token_ids
        scores = [seq.cumulative_logprob for seq in beams]
        if not bool(logits.logsumexp(dim=-1).isfinite().all()):
            raise RequestError(MODEL) from NonFiniteLogitsError("no probabilities follow from these logits")
        stop_check = self._stop_check(group, beams) if group.params.stop else None
        with attribute_to_request(BEAM_SEARCH):
            return choose_beams(logits, scores, group.params.beam_width, ends, is_last, stop_check)

    def _stop_check(self, group: SequenceGroup, beams: list[TokenSequence]) -> StopCheck:
        """A stop text may cut several beams to the same text: the first of them is kept, as a hypothesis."""
        texts = {self.sequences.text_of(seq) for seq in hypotheses(group)}

        def check(candidate: Candidate) -> Literal["goes on", "stops", "repeats"]:
            text = self.sequences.text_if_stopped(beams[candidate.beam], candidate.token_id)
            if text is None:
                return "goes on"
            if text in texts:
                return "repeats"
            texts.add(text)
            return "stops"

        return check

    def _keep_hypotheses(self, group: SequenceGroup, beams: list[TokenSequence], choice: BeamChoice) -> None:
        """A candidate that ended becomes a finished sequence of its own; its beam may live on another way."""
        for candidate in choice.ended:
            hypothesis = self.sequences.fork(beams[candidate.beam], group)
            self._take(hypothesis, candidate)
            self.sequences.finish(hypothesis, self.sequences.finish_reason(group, hypothesis) or "length")

    def _continue_beams(
        self, group: SequenceGroup, beams: list[TokenSequence], choice: BeamChoice
    ) -> list[TokenSequence]:
        """Fork first, free after (paper Fig. 9): blocks that a survivor needs are never freed in between."""
        heirs: list[tuple[TokenSequence, Candidate]] = []
        continued: set[int] = set()
        for candidate in choice.survivors:
            parent = beams[candidate.beam]
            heir = self.sequences.fork(parent, group) if candidate.beam in continued else parent
            continued.add(candidate.beam)
            heirs.append((heir, candidate))
        for number, beam in enumerate(beams):
            if number not in continued:
                self.sequences.finish(beam, "beam_pruned")
        for heir, candidate in heirs:
            self._take(heir, candidate)
        return [heir for heir, _index in heirs]

    def _take(self, seq: TokenSequence, candidate: Candidate) -> None:
        self.sequences.append_token(seq, SampledToken(candidate.token_id, candidate.logprob - seq.cumulative_logprob))

    def _is_over(self, group: SequenceGroup, survivors: list[TokenSequence]) -> bool:
        scores = [score_of(seq) for seq in hypotheses(group)]
        best = max(seq.cumulative_logprob for seq in survivors)
        with attribute_to_request(BEAM_SEARCH):
            return is_search_over(scores, best, len(survivors[0].output_token_ids), group.params.beam_width)


def hypotheses(group: SequenceGroup) -> list[TokenSequence]:
    """Beams that ended by themselves."""
    return [seq for seq in group.sequences if seq.finish_reason in ("stop", "length")]


def score_of(seq: TokenSequence) -> float:
    """The sequence's rank among beams; one that generated nothing counts as length 1."""
    return hypothesis_score(seq.cumulative_logprob, max(1, len(seq.output_token_ids)))
