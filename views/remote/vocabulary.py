"""Token ids of another server as text, when this app has that model's vocabulary; else as ids."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from engine.i18n import N_, _
from engine.model.tokenizer import Tokenizer
from views.browser.text_safe import NEWLINE_MARK
from views.server.model_registry import EMBEDDED, TINY, default_model, model_registry

IDS = N_("Token ids")
LONGEST_TEXT = 160
IDS_SHOWN = 24


@dataclass(frozen=True)
class Vocabulary:
    """Writes tokens as text; as ids when `tokenizer` is None."""

    tokenizer: Tokenizer | None = None

    def piece(self, token_id: int) -> str:
        """One token, for a slot of the memory map."""
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
    return " ".join(map(str, token_ids)) or _("tokens not published")


def vocabulary_names() -> list[str]:
    """The names a reader can choose from."""
    return list(dict.fromkeys([IDS, default_model(), EMBEDDED, TINY]))


def default_vocabulary_name(model: str | None) -> str:
    """The vocabulary of the server's model, when the app has it at hand; else ids."""
    name = (model or "").rstrip("/").rsplit("/", 1)[-1].lower()
    at_hand = {default_model(), TINY}
    return next((choice for choice in at_hand if choice.lower() == name), IDS)


def vocabulary_of(choice: str) -> Vocabulary:
    """The vocabulary of this name; that of ids while its model loads. Never waits."""
    if choice == IDS or choice not in vocabulary_names():
        return Vocabulary()
    model = model_registry().request(choice).model
    return Vocabulary() if model is None else Vocabulary(model.weights.tokenizer)
