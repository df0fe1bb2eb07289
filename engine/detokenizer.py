"""Tokens to text while they arrive, never showing half a character."""

from __future__ import annotations

import codecs

from engine.tokenizer import Tokenizer


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
        self.text = ""
        """Everything shown so far."""

    def push(self, token_id: int) -> str:
        """The text this token completes, often one word, sometimes nothing."""
        if self._skip_special_tokens and self._tokenizer.is_special(token_id):
            return ""
        return self._show(self._decoder.decode(self._tokenizer.piece(token_id)))

    def flush(self) -> str:
        """What is still held back, for a sequence that has ended."""
        return self._show(self._decoder.decode(b"", final=True))

    def fork(self) -> IncrementalDetokenizer:
        """An independent copy, for a sequence that splits in two."""
        copy = IncrementalDetokenizer(self._tokenizer, skip_special_tokens=self._skip_special_tokens)
        copy._decoder.setstate(self._decoder.getstate())
        copy.text = self.text
        return copy

    def _show(self, text: str) -> str:
        self.text += text
        return text
