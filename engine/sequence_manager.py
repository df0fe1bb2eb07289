"""SequenceManager: fork a sequence, append a token, finish. Blocks, events and text change together here."""

from __future__ import annotations

from engine.error_isolation import DETOKENIZER, STOP_CHECK, request_error
from engine.kv_cache.manager import KVCacheManager
from engine.model.detokenizer import TextStream
from engine.model.tokenizer import Tokenizer
from engine.outputs import RequestOutput, SequenceOutput
from engine.sampler import SampledToken
from engine.sequence import Sequence, SequenceGroup
from engine.trace.events import FinishReason, SequenceFinished, SequenceForked, TokenSampled
from engine.trace.trace import Trace


class SequenceManager:
    """Owns the text of every sequence; asks `kv` for memory; writes the sequence events."""

    def __init__(self, kv: KVCacheManager, trace: Trace, tokenizer: Tokenizer, max_model_len: int) -> None:
        self.kv = kv
        self.trace = trace
        self.tokenizer = tokenizer
        self.max_model_len = max_model_len
        self._texts: dict[str, TextStream] = {}

    def on_added(self, group: SequenceGroup, seq: Sequence) -> None:
        """A sequence that has generated nothing yet."""
        self._texts[seq.seq_id] = TextStream(self.tokenizer, group.params.stop)

    def fork(self, parent: Sequence, group: SequenceGroup) -> Sequence:
        """A new sequence of `group` that knows what the parent knows and shares all its blocks."""
        seq_id, index = group.new_sequence_id()
        child = parent.fork(seq_id, index)
        self.attach_child(parent, child, group)
        return child

    def attach_child(self, parent: Sequence, child: Sequence, group: SequenceGroup) -> None:
        """Enter a copy made by `Sequence.fork` into the group, the tables, the trace and the texts."""
        group.sequences.append(child)
        self._texts[child.seq_id] = self._texts[parent.seq_id].fork()
        self.trace.append(SequenceForked(self.trace.step, parent.seq_id, child.seq_id, group.request_id))
        self.kv.fork(parent, child)

    def append_token(self, seq: Sequence, sampled: SampledToken) -> None:
        """The sequence knows one token more; its keys and values come with the next step.

        Raises RequestError when the token cannot be shown; the sequence can still be ended.
        """
        try:
            piece = self.tokenizer.display(sampled.token_id)
        except Exception as error:
            raise request_error(DETOKENIZER, error) from error
        self.trace.append(
            TokenSampled(self.trace.step, seq.seq_id, len(seq.token_ids), sampled.token_id, piece, sampled.logprob)
        )
        seq.token_ids.append(sampled.token_id)
        seq.cumulative_logprob += sampled.logprob
        try:
            self._texts[seq.seq_id].push(sampled.token_id)
        except Exception as error:
            raise request_error(DETOKENIZER, error) from error

    def finish_reason(self, group: SequenceGroup, seq: Sequence) -> FinishReason | None:
        """Why the sequence is complete now, or None. An end token or stop text wins over a length limit.

        Raises RequestError when the check itself fails.
        """
        params = group.params
        num_tokens = len(seq.token_ids)
        num_output_tokens = num_tokens - seq.num_prompt_tokens
        try:
            if num_output_tokens and seq.token_ids[-1] in self.tokenizer.eos_token_ids and not params.ignore_eos:
                return "stop"
            if self._texts[seq.seq_id].stopped:
                return "stop"
        except Exception as error:
            raise request_error(STOP_CHECK, error) from error
        if num_output_tokens >= params.max_tokens or num_tokens >= self.max_model_len:
            return "length"
        return None

    def text_of(self, seq: Sequence) -> str:
        """What may be shown of the sequence's text."""
        return self._texts[seq.seq_id].text

    def text_if_stopped(self, seq: Sequence, token_id: int) -> str | None:
        """The text that the sequence would end with if this token came next and completed a stop text; else None."""
        stream = self._texts[seq.seq_id].fork()
        stream.push(token_id)
        return stream.text if stream.stopped else None

    def finish(self, seq: Sequence, reason: FinishReason) -> None:
        """Give every block back and close the text."""
        self.kv.free(seq)
        seq.finish_reason = reason
        self._texts[seq.seq_id].close()
        self.trace.append(SequenceFinished(self.trace.step, seq.seq_id, reason))

    def release(self, group: SequenceGroup) -> None:
        """Drop the texts of a group that is finished."""
        for seq in group.sequences:
            del self._texts[seq.seq_id]

    def output(self, group: SequenceGroup, chosen: list[Sequence]) -> RequestOutput:
        """The request as a record, its `chosen` sequences in the order given."""
        first = group.sequences[0]
        return RequestOutput(
            request_id=group.request_id,
            prompt_token_ids=first.prompt_token_ids,
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
