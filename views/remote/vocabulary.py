"""Token ids of another server as text: by the server itself, by a model that this app has, or else as ids."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from engine.i18n import N_, _
from engine.model.tokenizer import Tokenizer
from engine.remote.detokenizer import Detokenizer
from views.browser.text_safe import NEWLINE_MARK
from views.server.model_registry import EMBEDDED, TINY, default_model, model_registry

IDS = N_("Token ids")
BY_SERVER = N_("Text, by the server's /detokenize")
LONGEST_TEXT = 160
IDS_SHOWN = 24


class Vocabulary:
    """Writes tokens as ids; what derives from it, as text where there is one.

    most_ids: of a long sequence, as many are read at one end.
    """

    most_ids = LONGEST_TEXT

    def piece(self, token_id: int) -> str:
        """One token, for a slot of the memory map."""
        return str(token_id)

    def beginning(self, token_ids: Sequence[int]) -> str:
        """Some tokens on one line, cut at the end when they are many."""
        first = token_ids[: self.most_ids]
        text = self._text(first)
        if text is None:
            return _ids(token_ids[:IDS_SHOWN]) + (" …" if len(token_ids) > IDS_SHOWN else "")
        is_cut = len(text) > LONGEST_TEXT or len(token_ids) > len(first)
        return text[:LONGEST_TEXT] + ("…" if is_cut else "")

    def end(self, token_ids: Sequence[int]) -> str:
        """Some tokens on one line, cut at the beginning when they are many."""
        last = token_ids[-self.most_ids :]
        text = self._text(last)
        if text is None:
            return ("… " if len(token_ids) > IDS_SHOWN else "") + _ids(token_ids[-IDS_SHOWN:])
        is_cut = len(text) > LONGEST_TEXT or len(token_ids) > len(last)
        return ("…" if is_cut else "") + text[-LONGEST_TEXT:]

    def _text(self, token_ids: Sequence[int]) -> str | None:
        """On one line, or None where there is none, or none yet."""
        return None


@dataclass(frozen=True)
class TokenizerVocabulary(Vocabulary):
    """Of a model that this app has."""

    tokenizer: Tokenizer

    def piece(self, token_id: int) -> str:
        """See Vocabulary."""
        return self.tokenizer.display(token_id) if 0 <= token_id < self.tokenizer.vocab_size else str(token_id)

    def _text(self, token_ids: Sequence[int]) -> str | None:
        if not token_ids or not all(0 <= token < self.tokenizer.vocab_size for token in token_ids):
            return None
        return self.tokenizer.decode(token_ids, skip_special_tokens=False).replace("\n", NEWLINE_MARK)


@dataclass(frozen=True)
class ServerVocabulary(Vocabulary):
    """Of the server that is viewed; what it has not answered yet is shown as ids."""

    detokenizer: Detokenizer
    most_ids = 64

    def piece(self, token_id: int) -> str:
        """See Vocabulary."""
        text = self.detokenizer.text((token_id,))
        return str(token_id) if text is None else text or f"[{token_id}]"

    def _text(self, token_ids: Sequence[int]) -> str | None:
        text = self.detokenizer.text(token_ids) if token_ids else None
        return None if text is None else text.replace("\n", NEWLINE_MARK)


def _ids(token_ids: Sequence[int]) -> str:
    return " ".join(map(str, token_ids)) or _("tokens not published")


def vocabulary_names(detokenizer: Detokenizer | None) -> list[str]:
    """The names a reader can choose from. `detokenizer`: of a server that answers."""
    by_server = [] if detokenizer is None else [BY_SERVER]
    return list(dict.fromkeys([*by_server, IDS, default_model(), EMBEDDED, TINY]))


def default_vocabulary_name(model: str | None, detokenizer: Detokenizer | None) -> str:
    """The server's own where it answers; else that of its model, when the app has it at hand; else ids."""
    if detokenizer is not None:
        return BY_SERVER
    name = (model or "").rstrip("/").rsplit("/", 1)[-1].lower()
    at_hand = {default_model(), TINY}
    return next((choice for choice in at_hand if choice.lower() == name), IDS)


def vocabulary_of(choice: str, detokenizer: Detokenizer | None) -> Vocabulary | None:
    """The vocabulary of this name; None while its model loads. Never waits."""
    if choice == BY_SERVER and detokenizer is not None:
        return ServerVocabulary(detokenizer)
    if choice not in vocabulary_names(None) or choice == IDS:
        return Vocabulary()
    model = model_registry().request(choice).model
    return None if model is None else TokenizerVocabulary(model.weights.tokenizer)
