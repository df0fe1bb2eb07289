"""Token ids of a foreign server as text, when this app has that model's vocabulary; as ids when it has not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from engine.tokenizer import Tokenizer
from views.server import EMBEDDED, TINY, default_model, model_shelf
from views.text_safe import NEWLINE_MARK

IDS = "Token ids"
LONGEST_TEXT = 160
IDS_SHOWN = 24


@dataclass(frozen=True)
class Words:
    """`tokenizer` None: ids are shown."""

    tokenizer: Tokenizer | None = None

    def piece(self, token_id: int) -> str:
        """One token, for a slot."""
        if self.tokenizer is None or not 0 <= token_id < self.tokenizer.vocab_size:
            return str(token_id)
        return self.tokenizer.display(token_id)

    def beginning(self, token_ids: Sequence[int]) -> str:
        """Some tokens on one line, cut at the end when they are many."""
        if not self._can_read(token_ids):
            more = " …" if len(token_ids) > IDS_SHOWN else ""
            return _ids(token_ids[:IDS_SHOWN]) + more
        whole = self._read(token_ids)
        return whole if len(whole) <= LONGEST_TEXT else whole[:LONGEST_TEXT] + "…"

    def end(self, token_ids: Sequence[int]) -> str:
        """Some tokens on one line, cut at the beginning when they are many."""
        if not self._can_read(token_ids):
            more = "… " if len(token_ids) > IDS_SHOWN else ""
            return more + _ids(token_ids[-IDS_SHOWN:])
        whole = self._read(token_ids)
        return whole if len(whole) <= LONGEST_TEXT else "…" + whole[-LONGEST_TEXT:]

    def _can_read(self, token_ids: Sequence[int]) -> bool:
        return self.tokenizer is not None and all(0 <= token < self.tokenizer.vocab_size for token in token_ids)

    def _read(self, token_ids: Sequence[int]) -> str:
        assert self.tokenizer is not None
        return self.tokenizer.decode(token_ids, skip_special_tokens=False).replace("\n", NEWLINE_MARK)


def _ids(token_ids: Sequence[int]) -> str:
    return " ".join(map(str, token_ids)) or "tokens not told"


def choices() -> list[str]:
    return list(dict.fromkeys([IDS, default_model(), EMBEDDED, TINY]))


def likely_choice(model: str | None) -> str:
    """The vocabulary of the server's model, when the app has it at hand; else ids."""
    name = (model or "").rstrip("/").rsplit("/", 1)[-1].lower()
    at_hand = {default_model(), TINY}
    return next((choice for choice in at_hand if choice.lower() == name), IDS)


def words_of(choice: str) -> Words:
    """Words by the chosen vocabulary; ids while its model loads. Never waits."""
    if choice == IDS or choice not in choices():
        return Words()
    model = model_shelf().ask(choice).model
    return Words() if model is None else Words(model.weights.tokenizer)
