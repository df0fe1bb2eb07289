"""Sequences and requests: what changed since the last frame."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from engine.state import CacheState, RequestState, SequenceState
from views.frame_dictionaries import FrameDictionaries
from views.touched import Touched


@dataclass
class _SequenceShadow:
    token_ids: list[int] = field(default_factory=list)
    pieces: list[str] = field(default_factory=list)
    fields: dict[str, Any] = field(
        default_factory=lambda: {"num_prompt": 0, "num_computed": 0, "table": [], "cpu_table": [], "finish": None}
    )


class SequenceEncoder:
    """Remembers what the reader of the frames already knows of sequences and requests."""

    def __init__(self, names: FrameDictionaries) -> None:
        self._names = names
        self.forget()

    def forget(self) -> None:
        """The reader knows no sequence's state."""
        self._seqs: dict[str, _SequenceShadow] = {}
        self._requests: dict[str, dict[str, Any]] = {}

    def encode(self, state: CacheState, touched: Touched, parents: Mapping[str, str]) -> dict[str, Any]:
        """Fields seqs and requests, each only when it changed."""
        sequences = [s for s in state.sequences.values() if touched.everything or s.seq_id in touched.seq_ids]
        requests = [r for r in state.requests.values() if touched.everything or r.request_id in touched.request_ids]
        entries = (self._sequence_entry(sequence, parents.get(sequence.seq_id)) for sequence in sequences)
        seqs = [entry for entry in entries if len(entry) > 1]
        changed = [entry for request in requests if (entry := self._request_entry(request)) is not None]
        return {key: value for key, value in (("seqs", seqs), ("requests", changed)) if value}

    def _sequence_entry(self, sequence: SequenceState, parent_id: str | None) -> dict[str, Any]:
        entry: dict[str, Any] = {"seq": self._names.seq(sequence.seq_id, sequence.request_id)}
        is_new = sequence.seq_id not in self._seqs
        known = self._seqs.setdefault(sequence.seq_id, _SequenceShadow())
        parent = self._seqs.get(parent_id) if is_new and parent_id is not None else None
        entry |= self._new_tokens(sequence, known, parent, parent_id)
        now = {
            "num_prompt": sequence.num_prompt_tokens,
            "num_computed": sequence.num_computed_tokens,
            "table": list(sequence.block_table),
            "cpu_table": list(sequence.cpu_block_table),
            "finish": sequence.finish_reason,
        }
        entry |= {key: value for key, value in now.items() if value != known.fields[key]}
        known.fields = now
        return entry

    def _new_tokens(
        self, sequence: SequenceState, known: _SequenceShadow, parent: _SequenceShadow | None, parent_id: str | None
    ) -> dict[str, Any]:
        """Tokens grow at the end; a fork starts from its parent's, so only what follows is sent."""
        source, source_id = (known, sequence.seq_id) if parent is None else (parent, parent_id)
        kept = _num_kept(source, sequence)
        if parent is None and kept == len(known.token_ids) == sequence.num_tokens:
            return {}
        added = zip(sequence.token_ids[kept:], sequence.pieces[kept:], strict=True)
        known.token_ids, known.pieces = list(sequence.token_ids), list(sequence.pieces)
        return {
            "of": self._names.known_seq(source_id or ""),
            "keep": kept,
            "add": [self._names.token(token_id, piece) for token_id, piece in added],
        }

    def _request_entry(self, request: RequestState) -> dict[str, Any] | None:
        entry = {
            "request_id": request.request_id,
            "status": request.status,
            "reason": request.reason,
            "seqs": [self._names.known_seq(seq_id) for seq_id in request.seq_ids],
        }
        if self._requests.get(request.request_id) == entry:
            return None
        self._requests[request.request_id] = entry
        return entry


def _num_kept(source: _SequenceShadow, sequence: SequenceState) -> int:
    """How many of the source's first tokens the sequence starts with. Whole lists are compared first, at C speed."""
    length = len(source.token_ids)
    if sequence.token_ids[:length] == source.token_ids and sequence.pieces[:length] == source.pieces:
        return length
    pairs = zip(source.token_ids, source.pieces, sequence.token_ids, sequence.pieces, strict=False)
    return next((i for i, (a, b, c, d) in enumerate(pairs) if (a, b) != (c, d)), min(length, sequence.num_tokens))
