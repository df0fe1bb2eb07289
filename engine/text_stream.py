"""Streaming text that stop texts can end: they never show, not even their beginning."""

from __future__ import annotations

from collections.abc import Sequence

from engine.detokenizer import IncrementalDetokenizer
from engine.tokenizer import Tokenizer


class TextStream:
    """The text of one sequence so far. `text` may lag behind the tokens, and never takes anything back."""

    def __init__(self, tokenizer: Tokenizer, stop: Sequence[str] = ()) -> None:
        self._detokenizer = IncrementalDetokenizer(tokenizer)
        self._stop = tuple(stop)
        self._end: int | None = None
        self._closed = False

    @property
    def stopped(self) -> bool:
        """Whether a stop text is complete."""
        return self._end is not None

    @property
    def text(self) -> str:
        """What may be shown: while open, nothing that could still turn out to be the start of a stop text."""
        whole = self._detokenizer.text
        if self._end is not None:
            return whole[: self._end]
        return whole if self._closed else whole[: len(whole) - self._num_held_back(whole)]

    def push(self, token_id: int) -> None:
        """Add a token, and look for a stop text where it could have been completed."""
        before = len(self._detokenizer.text)
        self._detokenizer.push(token_id)
        searched_from = max(0, before - max((len(s) for s in self._stop), default=1) + 1)
        found = [at for stop in self._stop if (at := self._detokenizer.text.find(stop, searched_from)) >= 0]
        if found and self._end is None:
            self._end = min(found)

    def close(self) -> None:
        """No more tokens: an unfinished character shows as the replacement character, as in a whole decode."""
        self._detokenizer.flush()
        self._closed = True

    def fork(self) -> TextStream:
        """An independent stream that has seen the same tokens."""
        twin = TextStream.__new__(TextStream)
        twin._detokenizer = self._detokenizer.fork()
        twin._stop, twin._end, twin._closed = self._stop, self._end, self._closed
        return twin

    def _num_held_back(self, whole: str) -> int:
        lengths = [n for stop in self._stop for n in range(1, len(stop)) if whole.endswith(stop[:n])]
        return max(lengths, default=0)
