"""From logits to the next state of every request: samples one by one, beams all together."""

from __future__ import annotations

from collections.abc import Sequence as Seq

from torch import Tensor

from engine.beam import BeamChoice, Candidate, choose_beams, hypothesis_score, is_search_over
from engine.isolation import BEAM_SEARCH, Faults, blaming_the_request, sample_isolated
from engine.lifecycle import Lifecycle
from engine.sampler import Choice, Draw, TokenChooser
from engine.scheduler import ScheduledSequence
from engine.sequence import Sequence, SequenceGroup


class Decoder:
    """Carries out what was chosen. `logits` has one row for each item with `needs_logits`, in order."""

    def __init__(self, lifecycle: Lifecycle, chooser: TokenChooser) -> None:
        self.lifecycle = lifecycle
        self.chooser = chooser

    def advance(self, items: Seq[ScheduledSequence], logits: Tensor) -> Faults:
        """Give every sequence whose last token ran its next token, and end those that are complete.

        Returns the requests for which that failed; they are for the caller to end.
        """
        faults = Faults()
        rows = {item.sequence: row for row, item in enumerate(i for i in items if i.needs_logits)}
        groups = list(dict.fromkeys(item.group for item in items if item.needs_logits))
        for group in groups:
            self._end_if_nothing_is_wanted(group)
        groups = [group for group in groups if not group.is_finished]
        self._advance_samples([g for g in groups if not g.params.uses_beam_search], rows, logits, faults)
        for group in groups:
            if group.params.uses_beam_search:
                with faults.of(group):
                    self._advance_beams(group, rows, logits)
        return faults

    def _end_if_nothing_is_wanted(self, group: SequenceGroup) -> None:
        """`max_tokens=0`: the prompt is computed and cached, and that is all."""
        if group.params.max_tokens == 0:
            for seq in group.live_sequences:
                self.lifecycle.end(seq, "length")

    # -- samples --

    def _advance_samples(
        self, groups: list[SequenceGroup], rows: dict[Sequence, int], logits: Tensor, faults: Faults
    ) -> None:
        draws: list[Draw] = []
        for group in groups:
            for seq in [s for s in group.sequences if s in rows]:
                samples = [seq, *self._first_forks(group, seq)]
                draws += [Draw(rows[seq], group, sample) for sample in samples]
        for draw, choice in sample_isolated(self.chooser, logits, draws, faults):
            if draw.group not in faults:
                with faults.of(draw.group):
                    self._take_sample(draw, choice)

    def _take_sample(self, draw: Draw, choice: Choice) -> None:
        self.lifecycle.append_token(draw.sequence, choice)
        reason = self.lifecycle.reason_to_end(draw.group, draw.sequence)
        if reason:
            self.lifecycle.end(draw.sequence, reason)

    def _first_forks(self, group: SequenceGroup, seq: Sequence) -> list[Sequence]:
        """Parallel sampling the paper's way: one prompt was computed, the other samples fork from it now."""
        missing = group.params.n - len(group.sequences)
        if missing <= 0 or seq.output_token_ids:
            return []
        return [self.lifecycle.fork(seq, group) for _ in range(missing)]

    # -- beams --

    def _advance_beams(self, group: SequenceGroup, rows: dict[Sequence, int], logits: Tensor) -> None:
        beams = [seq for seq in group.live_sequences if seq in rows]
        choice = self._choose(group, beams, logits[[rows[seq] for seq in beams]])
        self._keep_hypotheses(group, beams, choice)
        survivors = self._continue_beams(group, beams, choice)
        if not survivors or self._is_over(group, survivors):
            for seq in survivors:
                self.lifecycle.end(seq, "beam_pruned")

    def _choose(self, group: SequenceGroup, beams: list[Sequence], logits: Tensor) -> BeamChoice:
        longest = beams[0].num_tokens + 1
        is_last = (
            longest - beams[0].num_prompt_tokens >= group.params.max_tokens or longest >= self.lifecycle.max_model_len
        )
        ends = () if group.params.ignore_eos else self.lifecycle.tokenizer.eos_token_ids
        scores = [seq.cumulative_logprob for seq in beams]
        with blaming_the_request(BEAM_SEARCH):
            return choose_beams(logits, scores, group.params.beam_width, ends, is_last)

    def _keep_hypotheses(self, group: SequenceGroup, beams: list[Sequence], choice: BeamChoice) -> None:
        """A candidate that ended becomes a finished sequence of its own; its beam may live on another way."""
        ends = self.lifecycle.tokenizer.eos_token_ids
        for candidate in choice.ended:
            hypothesis = self.lifecycle.fork(beams[candidate.beam], group)
            self._take(hypothesis, candidate)
            self.lifecycle.end(hypothesis, "stop" if candidate.token_id in ends else "length")

    def _continue_beams(self, group: SequenceGroup, beams: list[Sequence], choice: BeamChoice) -> list[Sequence]:
        """Fork first, free after (paper Fig. 9): blocks that a survivor needs are never let go in between."""
        heirs: list[tuple[Sequence, Candidate]] = []
        continued: set[int] = set()
        for candidate in choice.survivors:
            parent = beams[candidate.beam]
            heir = self.lifecycle.fork(parent, group) if candidate.beam in continued else parent
            continued.add(candidate.beam)
            heirs.append((heir, candidate))
        for number, beam in enumerate(beams):
            if number not in continued:
                self.lifecycle.end(beam, "beam_pruned")
        for heir, candidate in heirs:
            self._take(heir, candidate)
        return [heir for heir, _ in heirs]

    def _take(self, seq: Sequence, candidate: Candidate) -> None:
        self.lifecycle.append_token(seq, Choice(candidate.token_id, candidate.logprob - seq.cumulative_logprob))

    def _is_over(self, group: SequenceGroup, survivors: list[Sequence]) -> bool:
        scores = [score_of(seq) for seq in hypotheses(group)]
        best = max(seq.cumulative_logprob for seq in survivors)
        with blaming_the_request(BEAM_SEARCH):
            return is_search_over(scores, best, len(survivors[0].output_token_ids), group.params.beam_width)


def hypotheses(group: SequenceGroup) -> list[Sequence]:
    """Beams that ended by themselves."""
    return [seq for seq in group.sequences if seq.finish_reason in ("stop", "length")]


def score_of(seq: Sequence) -> float:
    """The sequence's rank among beams; one that generated nothing counts as length 1."""
    return hypothesis_score(seq.cumulative_logprob, max(1, len(seq.output_token_ids)))
