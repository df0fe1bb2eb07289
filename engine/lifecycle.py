"""What happens to one sequence: it forks, learns a token, ends. Memory, events and text change together here."""

from __future__ import annotations

from engine.events import FinishReason, SequenceFinished, SequenceForked, TokenSampled
from engine.isolation import DETOKENIZER, STOP_CHECK, blaming_the_request
from engine.kv_cache import KVCacheManager
from engine.outputs import RequestOutput, SequenceOutput
from engine.sampler import Choice
from engine.sequence import Sequence, SequenceGroup
from engine.text_stream import TextStream
from engine.tokenizer import Tokenizer
from engine.trace import Trace


class Lifecycle:
    """Owns the text of every sequence; asks `kv` for memory; writes the sequence events."""

    def __init__(self, kv: KVCacheManager, trace: Trace, tokenizer: Tokenizer, max_model_len: int) -> None:
        self.kv = kv
        self.trace = trace
        self.tokenizer = tokenizer
        self.max_model_len = max_model_len
        self._texts: dict[str, TextStream] = {}

    def begin(self, group: SequenceGroup, seq: Sequence) -> None:
        """A sequence that has generated nothing yet."""
        self._texts[seq.seq_id] = TextStream(self.tokenizer, group.params.stop)

    def fork(self, parent: Sequence, group: SequenceGroup) -> Sequence:
        """A new sequence of `group` that knows what the parent knows and shares all its blocks."""
        seq_id, index = group.new_sequence_id()
        child = parent.fork(seq_id, index)
        self.adopt(parent, child, group)
        return child

    def adopt(self, parent: Sequence, child: Sequence, group: SequenceGroup) -> None:
        """Enter a copy made by `Sequence.fork` into the group, the tables, the trace and the texts."""
        group.sequences.append(child)
        self._texts[child.seq_id] = self._texts[parent.seq_id].fork()
        self.trace.append(SequenceForked(self.trace.step, parent.seq_id, child.seq_id, group.request_id))
        self.kv.fork(parent, child)

    def append_token(self, seq: Sequence, choice: Choice) -> None:
        """The sequence knows one token more; its keys and values come with the next step.

        Raises RequestFaultError when the token cannot be shown; the sequence can still be ended.
        """
        with blaming_the_request(DETOKENIZER):
            piece = self.tokenizer.display(choice.token_id)
        self.trace.append(
            TokenSampled(self.trace.step, seq.seq_id, seq.num_tokens, choice.token_id, piece, choice.logprob)
        )
        seq.token_ids.append(choice.token_id)
        seq.cumulative_logprob += choice.logprob
        with blaming_the_request(DETOKENIZER):
            self._texts[seq.seq_id].push(choice.token_id)

    def reason_to_end(self, group: SequenceGroup, seq: Sequence) -> FinishReason | None:
        """Why the sequence is complete now, or None. An end token or stop text wins over a length limit.

        Raises RequestFaultError when that cannot be told.
        """
        with blaming_the_request(STOP_CHECK):
            return self._reason_to_end(group, seq)

    def _reason_to_end(self, group: SequenceGroup, seq: Sequence) -> FinishReason | None:
        params = group.params
        output = seq.output_token_ids
        if output and output[-1] in self.tokenizer.eos_token_ids and not params.ignore_eos:
            return "stop"
        if self._texts[seq.seq_id].stopped:
            return "stop"
        if len(output) >= params.max_tokens or seq.num_tokens >= self.max_model_len:
            return "length"
        return None

    def end(self, seq: Sequence, reason: FinishReason) -> None:
        """Give every block back and close the text."""
        self.kv.free(seq)
        seq.finish_reason = reason
        self._texts[seq.seq_id].close()
        self.trace.append(SequenceFinished(self.trace.step, seq.seq_id, reason))

    def forget(self, group: SequenceGroup) -> None:
        """Drop the texts of a group that is finished."""
        for seq in group.sequences:
            del self._texts[seq.seq_id]

    def output(self, group: SequenceGroup, chosen: list[Sequence]) -> RequestOutput:
        """The request as a record, its `chosen` sequences in the order given."""
        first = group.sequences[0]
        return RequestOutput(
            request_id=group.request_id,
            prompt_token_ids=tuple(first.token_ids[: first.num_prompt_tokens]),
            outputs=[self._sequence_output(seq) for seq in chosen],
            finished=group.is_finished,
            error=group.error or None,
        )

    def _sequence_output(self, seq: Sequence) -> SequenceOutput:
        return SequenceOutput(
            seq_id=seq.seq_id,
            index=seq.index,
            text=self._texts[seq.seq_id].text,
            token_ids=tuple(seq.output_token_ids),
            cumulative_logprob=seq.cumulative_logprob,
            finish_reason=seq.finish_reason,
        )
