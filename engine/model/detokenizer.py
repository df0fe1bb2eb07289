"""Tokens to text while they arrive: never half a character, and nothing from a stop text on."""

from __future__ import annotations

import codecs
from collections.abc import Sequence

from engine.model.tokenizer import Tokenizer


class IncrementalDetokenizer:
    """One sequence's text so far.

    A character may span several tokens (an emoji, most Japanese letters). Its first bytes are held back until
    the last one is there; bytes that can never become a character turn into U+FFFD. All that `push` and a final
    `flush` return, joined, equals `tokenizer.decode` of the same tokens.
    """

    def __init__(self, tokenizer: Tokenizer, *, skip_special_tokens: bool = True) -> None:
        self._tokenizer = tokenizer
        self._skip_special_tokens = skip_special_tokens
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._is_within_character = False
        self.text = ""
        """Everything shown so far."""

    def push(self, token_id: int) -> str:
        """The text this token completes, often one word, sometimes nothing."""
        if self._skip_special_tokens and self._tokenizer.is_special(token_id):
            return ""
        text = None if self._is_within_character else self._tokenizer.whole_text(token_id)
        if text is None:
            text = self._decoder.decode(self._tokenizer.piece(token_id))
            self._is_within_character = bool(self._decoder.getstate()[0])
        self.text += text
        return text

    def flush(self) -> str:
        """What is still held back, for a sequence that has ended."""
        text = self._decoder.decode(b"", final=True)
        self._is_within_character = False
        self.text += text
        return text

    def fork(self) -> IncrementalDetokenizer:
        """An independent copy, for a sequence that splits in two."""
        copy = IncrementalDetokenizer(self._tokenizer, skip_special_tokens=self._skip_special_tokens)
        copy._decoder.setstate(self._decoder.getstate())
        copy._is_within_character = self._is_within_character
        copy.text = self.text
        return copy


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
        if not self._stop:
            return whole
        if self._end is not None:
            return whole[: self._end]
        return whole if self._closed else whole[: len(whole) - self._num_held_back(whole)]

    def push(self, token_id: int) -> None:
        """Add a token, and look for a stop text where it could have been completed."""
        added = self._detokenizer.push(token_id)
        if not self._stop:
            return
        before = len(self._detokenizer.text) - len(added)
        searched_from = max(0, before - max(map(len, self._stop)) + 1)
        found = [at for stop in self._stop if (at := self._detokenizer.text.find(stop, searched_from)) >= 0]
        if found and self._end is None:
            self._end = min(found)

    def close(self) -> None:
        """No more tokens: an unfinished character shows as the replacement character, as in a whole decode."""
        self._detokenizer.flush()
        self._closed = True

    def fork(self) -> TextStream:
        """An independent stream that has seen the same tokens."""
        copy = TextStream.__new__(TextStream)
        copy._detokenizer = self._detokenizer.fork()
        copy._stop, copy._end, copy._closed = self._stop, self._end, self._closed
        return copy

    def _num_held_back(self, whole: str) -> int:
        lengths = [n for stop in self._stop for n in range(1, len(stop)) if whole.endswith(stop[:n])]
        return max(lengths, default=0)
