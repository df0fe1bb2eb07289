"""Numbers for names: each token and sequence is sent once in full, then named by its index."""

from __future__ import annotations

from typing import Any

from engine.state import SlotContent
from views.labels import OwnerLabels
from views.text_safe import visible_piece


class FrameDictionaries:
    """Hands out indices; `take_new()` returns what the reader of the frames has not been told yet."""

    def __init__(self) -> None:
        self._labels = OwnerLabels()
        self._seqs: dict[str, int] = {}
        self._tokens: dict[tuple[int, str], int] = {}
        self._new_seqs: list[dict[str, Any]] = []
        self._new_tokens: list[list[Any]] = []

    def seq(self, seq_id: str, request_id: str) -> int:
        """The index of a sequence; unseen ones get a letter and a colour."""
        if seq_id not in self._seqs:
            self._seqs[seq_id] = len(self._seqs)
            label = self._labels.of(seq_id, request_id)
            self._new_seqs.append(
                {"seq_id": seq_id, "request_id": request_id, "letter": label.letter, "colour": label.colour}
            )
        return self._seqs[seq_id]

    def known_seq(self, seq_id: str) -> int:
        """The index of a sequence already named, -1 for none."""
        return self._seqs.get(seq_id, -1)

    def token(self, token_id: int, piece: str) -> int:
        """The index of a token: its id and its text made visible."""
        key = (token_id, piece)
        if key not in self._tokens:
            self._tokens[key] = len(self._tokens)
            self._new_tokens.append([token_id, visible_piece(piece)])
        return self._tokens[key]

    def content(self, content: SlotContent | None) -> tuple[int, ...]:
        """What a slot holds as (sequence, position, token); () for nothing."""
        if content is None:
            return ()
        return self.known_seq(content.seq_id), content.position, self.token(content.token_id, content.piece)

    def take_new(self) -> dict[str, Any]:
        """`new_seqs` and `new_tokens` since the last call, each only when there are any."""
        news = {"new_seqs": self._new_seqs, "new_tokens": self._new_tokens}
        self._new_seqs, self._new_tokens = [], []
        return {key: value for key, value in news.items() if value}
