"""What a request has produced so far: plain records for pages, notebooks and servers."""

from __future__ import annotations

from dataclasses import field

from engine.trace.events import FinishReason
from engine.trace.record import record


@record
class SequenceOutput:
    """One sample or beam. `text` never ends in half a character; it is complete once finished."""

    seq_id: str
    index: int
    text: str
    token_ids: tuple[int, ...]
    cumulative_logprob: float
    finish_reason: FinishReason | None


@record
class RequestOutput:
    """One request, best sample first for beams, in order of index otherwise. `error`: why it was refused
    or ended before its time."""

    request_id: str
    prompt_token_ids: tuple[int, ...] = ()
    outputs: list[SequenceOutput] = field(default_factory=list)
    finished: bool = False
    error: str | None = None
