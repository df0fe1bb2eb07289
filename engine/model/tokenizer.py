"""Text to token ids and back. Every token is bytes first; characters appear once their bytes are complete.

Jinja and Hugging Face's `tokenizers` are imported where they are used: the byte tokenizer needs neither.
"""

from __future__ import annotations

import json
import re
import secrets
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.i18n import _
from engine.model.load_report import ModelLoadError

if TYPE_CHECKING:
    from tokenizers import Tokenizer as RustTokenizer

    from engine.model.chat_template import Message


class Tokenizer(ABC):
    """What the engine and the pages ask of a vocabulary."""

    vocab_size: int
    bos_token_id: int | None
    eos_token_ids: tuple[int, ...]
    """Any of these ends a text."""
    chat_template: str | None = None
    special_tokens: Mapping[str, str]
    """Names a chat template may use: `bos_token`, `eos_token`, ..."""

    def encode(self, text: str, *, add_special_tokens: bool = True) -> list[int]:
        """Token ids; `add_special_tokens` puts a beginning-of-text token where the model was trained with one."""
        whole = text.encode("utf-8", "replace").decode("utf-8")  # half a surrogate pair is not a character
        return self._encode(whole, add_special_tokens)

    def decode(self, token_ids: Iterable[int], *, skip_special_tokens: bool = True) -> str:
        """The text of the tokens' bytes; bytes that are no character become U+FFFD."""
        kept = [i for i in token_ids if not (skip_special_tokens and self.is_special(i))]
        return b"".join(map(self.piece, kept)).decode("utf-8", "replace")

    def display(self, token_id: int) -> str:
        """One token by itself: its text, with bytes of incomplete characters written as \\xNN; `[280]` without any."""
        return self.piece(token_id).decode("utf-8", "backslashreplace") or f"[{token_id}]"

    def whole_text(self, token_id: int) -> str | None:
        """The token's text when its bytes are complete characters; None when they are a part of one."""
        try:
            return self.piece(token_id).decode("utf-8")
        except UnicodeDecodeError:
            return None

    def render_chat(
        self, messages: Sequence[Message], *, reply: bool = True, continue_final_message: bool = False
    ) -> str:
        """The prompt the model was trained to see for a conversation, to be read; `encode_chat` gives its tokens.

        reply: it ends where the assistant's answer begins. continue_final_message: it ends with the last message's
        content instead. Raises ValueError when the model has no chat template, when the template refuses the
        messages, or when it leaves the message out that is to go on.
        """
        if self.chat_template is None:
            raise ValueError(_("This model has no chat template; give it plain text to continue."))
        from engine.model.chat_template import render, render_unfinished

        if continue_final_message:
            return render_unfinished(self.chat_template, messages, self.special_tokens)
        return render(self.chat_template, messages, self.special_tokens, reply=reply)

    def encode_chat(
        self,
        messages: Sequence[Message],
        *,
        reply: bool = True,
        continue_final_message: bool = False,
        add_special_tokens: bool = False,
    ) -> list[int]:
        """Token ids of `render_chat`. Only the template makes control tokens: one typed in a message stays text.

        Templates write the beginning-of-text token themselves, hence no `add_special_tokens`. Raises as `render_chat`.
        """
        text = self.render_chat(messages, reply=reply, continue_final_message=continue_final_message)
        return self.encode(text, add_special_tokens=add_special_tokens)

    @abstractmethod
    def piece(self, token_id: int) -> bytes:
        """The bytes one token stands for; empty for an id without a token."""

    @abstractmethod
    def is_special(self, token_id: int) -> bool:
        """Whether the token is a mark rather than text."""

    @abstractmethod
    def _encode(self, text: str, add_special_tokens: bool) -> list[int]: ...


class ByteTokenizer(Tokenizer):
    """One token a byte of UTF-8, and two marks. It adds no beginning-of-text token: lengths stay what they look."""

    vocab_size = 258
    bos_token_id = 256
    eos_token_id = 257
    eos_token_ids = (eos_token_id,)
    special_tokens: Mapping[str, str] = {}

    def piece(self, token_id: int) -> bytes:
        if token_id < 256:
            return bytes([token_id])
        return {self.bos_token_id: b"<bos>", self.eos_token_id: b"<eos>"}.get(token_id, b"")

    def is_special(self, token_id: int) -> bool:
        return token_id >= 256

    def _encode(self, text: str, add_special_tokens: bool) -> list[int]:
        return list(text.encode("utf-8"))


class SubwordTokenizer(Tokenizer):
    """A Hugging Face `tokenizer.json`: byte-level (GPT-2, Llama 3, Qwen) or SentencePiece-like (Llama 2, Mistral)."""

    def __init__(
        self,
        vocabulary: RustTokenizer,
        *,
        eos_token_ids: tuple[int, ...],
        special_tokens: Mapping[str, str],
        chat_template: str | None,
    ) -> None:
        self._vocabulary = vocabulary
        self._byte_level = b'"ByteLevel"' in vocabulary.decoder.__getstate__()
        self._added = vocabulary.get_added_tokens_decoder()
        self._special_ids = {token_id for token_id, token in self._added.items() if token.special}
        self._pieces: dict[int, bytes] = {}
        self._displayed: dict[int, str] = {}
        self._whole_texts: dict[int, str | None] = {}
        control = [token.content for token in self._added.values() if token.special]
        longest_first = sorted(control, key=len, reverse=True)
        self._control_token = re.compile("|".join(map(re.escape, longest_first)) or "(?!)")
        self.vocab_size = vocabulary.get_vocab_size(with_added_tokens=True)
        self.special_tokens = special_tokens
        self.bos_token_id = self._id_of("bos_token")
        eos_token_id = self._id_of("eos_token")
        self.eos_token_ids = eos_token_ids or (() if eos_token_id is None else (eos_token_id,))
        self.chat_template = chat_template

    def encode_chat(
        self,
        messages: Sequence[Message],
        *,
        reply: bool = True,
        continue_final_message: bool = False,
        add_special_tokens: bool = False,
    ) -> list[int]:
        typed: list[str] = []

        def hide(found: re.Match[str]) -> str:
            typed.append(found[0])
            return f"{_MARK}{len(typed) - 1}{_MARK}"

        hidden = [{name: self._control_token.sub(hide, text) for name, text in message.items()} for message in messages]
        text = self.render_chat(hidden, reply=reply, continue_final_message=continue_final_message)
        if not typed:
            return self.encode(text, add_special_tokens=add_special_tokens)
        from_template, *rest = re.split(f"{_MARK}(\\d+){_MARK}", text)
        marked = self._control_token.sub(_marked, from_template)
        for number, from_template in zip(rest[::2], rest[1::2], strict=True):
            marked += typed[int(number)] + self._control_token.sub(_marked, from_template)
        whole = marked.encode("utf-8", "replace").decode("utf-8")
        encoder, ids = self._encoder_of_marked
        return [ids.get(i, i) for i in encoder.encode(whole, add_special_tokens=add_special_tokens).ids]

    @cached_property
    def _encoder_of_marked(self) -> tuple[RustTokenizer, Mapping[int | None, int]]:
        """A vocabulary in which a control token is one only between two marks, and whose token each of these is."""
        from tokenizers import AddedToken
        from tokenizers import Tokenizer as RustTokenizer

        encoder = RustTokenizer.from_str(self._vocabulary.to_str())
        encoder.encode_special_tokens = True
        ids: dict[int | None, int] = {}
        for token_id, token in self._added.items():
            if token_id in self._special_ids:
                content = f"{_MARK}{token.content}{_MARK}"
                encoder.add_tokens(
                    [AddedToken(content, lstrip=token.lstrip, rstrip=token.rstrip, normalized=False, special=False)]
                )
                ids[encoder.token_to_id(content)] = token_id
        return encoder, ids

    def piece(self, token_id: int) -> bytes:
        piece = self._pieces.get(token_id)
        if piece is None:
            piece = self._pieces[token_id] = self._piece(token_id)
        return piece

    def display(self, token_id: int) -> str:
        displayed = self._displayed.get(token_id)
        if displayed is None:
            displayed = self._displayed[token_id] = super().display(token_id)
        return displayed

    def whole_text(self, token_id: int) -> str | None:
        try:
            return self._whole_texts[token_id]
        except KeyError:
            text = self._whole_texts[token_id] = super().whole_text(token_id)
            return text

    def _piece(self, token_id: int) -> bytes:
        if token_id in self._added:
            return self._added[token_id].content.encode("utf-8")
        token = self._vocabulary.id_to_token(token_id) or ""
        return _byte_level_bytes(token) if self._byte_level else _sentencepiece_bytes(token)

    def is_special(self, token_id: int) -> bool:
        return token_id in self._special_ids

    def _encode(self, text: str, add_special_tokens: bool) -> list[int]:
        return self._vocabulary.encode(text, add_special_tokens=add_special_tokens).ids

    def _id_of(self, name: str) -> int | None:
        token = self.special_tokens.get(name)
        return None if token is None else self._vocabulary.token_to_id(token)


_MARK = f"\ue000{secrets.token_hex(8)}\ue001"
"""In a chat that is being rendered, around a control token. Nobody can type it, since nobody knows it."""


def _marked(control_token: re.Match[str]) -> str:
    return f"{_MARK}{control_token[0]}{_MARK}"


def load_tokenizer(folder: Path, eos_token_ids: tuple[int, ...]) -> SubwordTokenizer:
    """Read a model folder's tokenizer. Raises ModelLoadError when it has none this engine can read."""
    settings = _read_json(folder / "tokenizer_config.json")
    return SubwordTokenizer(
        _load_vocabulary(folder),
        eos_token_ids=eos_token_ids,
        special_tokens=_special_tokens(settings),
        chat_template=_chat_template(folder, settings),
    )


def _load_vocabulary(folder: Path) -> RustTokenizer:
    from tokenizers import Tokenizer as RustTokenizer

    file = folder / "tokenizer.json"
    if file.is_file():
        return RustTokenizer.from_file(str(file))
    # Older folders hold a vocabulary only transformers can convert; it is slow to import, so not before here.
    from transformers import AutoTokenizer

    try:
        converted = AutoTokenizer.from_pretrained(str(folder))
    except Exception as error:
        raise ModelLoadError(
            _("No tokenizer could be read from {folder}: it has no tokenizer.json.").format(folder=folder)
        ) from error
    vocabulary = getattr(converted, "backend_tokenizer", None)
    if not isinstance(vocabulary, RustTokenizer):
        raise ModelLoadError(
            _("The tokenizer in {folder} is not a fast tokenizer; choose a model with a tokenizer.json.").format(
                folder=folder
            )
        )
    return vocabulary


def _special_tokens(settings: Mapping[str, Any]) -> dict[str, str]:
    names = ("bos_token", "eos_token", "unk_token", "pad_token")
    entries = {name: settings.get(name) for name in names}
    return {name: _content(entry) for name, entry in entries.items() if entry is not None}


def _content(entry: str | Mapping[str, Any]) -> str:
    """Written either plainly or as a record with its stripping rules."""
    return entry if isinstance(entry, str) else str(entry["content"])


def _chat_template(folder: Path, settings: Mapping[str, Any]) -> str | None:
    """A file of its own in newer folders; one string, or named ones, in `tokenizer_config.json` before."""
    file = folder / "chat_template.jinja"
    if file.is_file():
        return file.read_text("utf-8")
    template = settings.get("chat_template")
    if isinstance(template, list):
        return next((str(named["template"]) for named in template if named["name"] == "default"), None)
    return None if template is None else str(template)


def _read_json(file: Path) -> dict[str, Any]:
    return dict(json.loads(file.read_text("utf-8"))) if file.is_file() else {}


def _byte_alphabet() -> dict[str, int]:
    """GPT-2's printable stand-in for every byte: itself where printable, else the next letter from U+0100 on."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in printable]
    return {chr(byte): byte for byte in printable} | {chr(0x100 + i): byte for i, byte in enumerate(others)}


_BYTE_OF = _byte_alphabet()
_BYTE_TOKEN = re.compile("<0x[0-9A-Fa-f]{2}>")


def _byte_level_bytes(token: str) -> bytes:
    """A token with a letter outside the alphabet is its own text, as the decoder of `tokenizers` has it."""
    if not _BYTE_OF.keys() >= set(token):
        return token.encode("utf-8")
    return bytes(_BYTE_OF[letter] for letter in token)


def _sentencepiece_bytes(token: str) -> bytes:
    """A blank is written U+2581, and a byte outside the vocabulary <0xNN>."""
    if _BYTE_TOKEN.fullmatch(token):
        return bytes([int(token[3:5], 16)])
    return token.replace("\u2581", " ").encode("utf-8")
