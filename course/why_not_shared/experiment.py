"""Why two prompts share no more blocks than they do, and the smallest edit that makes them share one more.

    answer = why_not_shared(tokenizer, 4, "The red fox ran", " The red fox sat")
    answer.num_shared_blocks, answer.reasons, answer.edit

Blocks are shared whole, from the first token on, and one token is always left to compute. Every count is the
engine's own: the two prompts run through its prefix cache (no model: a look-up needs tokens only).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from engine.components import EngineComponents
from engine.config import EngineConfig
from engine.engine import Engine
from engine.i18n import N_, _, counted
from engine.inspect.scratch import first_difference
from engine.model.tokenizer import Tokenizer
from engine.runner import NoModel
from engine.sampler import LogitsSampler
from engine.sampling_params import SamplingParams
from engine.trace.events import PrefixQueried

MAX_LENGTH = 20_000
"""Characters of a prompt: room for a long system prompt. Two of them are compared in a few seconds."""
MAX_TRIES = 40
"""Edits tried, cheapest first; where tokens merge across the seam, a cheap one may not do."""


@dataclass(frozen=True, slots=True)
class TypedPrompt:
    """What was typed, and whether the model's chat template is put around it."""

    text: str
    as_chat: bool = False


@dataclass(frozen=True, slots=True)
class Edit:
    """Make the second prompt `text`: `num_characters` inserted, deleted or replaced. Checked in the engine.

    `text` is the smallest edit among all that keep the end of the second prompt as it is.
    """

    text: str
    num_characters: int
    num_shared_blocks: int


@dataclass(frozen=True, slots=True)
class SharingAnswer:
    """`first_difference`: the first token index at which the prompts differ or one ends, None when they are equal.

    `num_common_tokens` in a row from the start; `num_shared_blocks` of `block_size` were found by the second prompt.
    `control`: positions of control tokens, which are no text. `reasons`: why it is not one more, in sentences.
    """

    tokens: tuple[tuple[int, ...], tuple[int, ...]]
    pieces: tuple[tuple[str, ...], tuple[str, ...]]
    control: tuple[frozenset[int], frozenset[int]]
    block_size: int
    first_difference: int | None
    num_common_tokens: int
    num_shared_blocks: int
    reasons: tuple[str, ...]
    edit: Edit | None

    @property
    def num_shared_tokens(self) -> int:
        """Tokens that the second prompt found in the cache: it does not compute them."""
        return self.num_shared_blocks * self.block_size

    @property
    def num_more_tokens(self) -> int:
        """Tokens that it would find further, with the edit made."""
        return (self.edit.num_shared_blocks - self.num_shared_blocks) * self.block_size if self.edit else 0


def why_not_shared(
    tokenizer: Tokenizer, block_size: int, first: TypedPrompt | str, second: TypedPrompt | str
) -> SharingAnswer:
    """Raises ValueError when a prompt is empty or longer than MAX_LENGTH, or the model has no chat template."""
    one, other = (TypedPrompt(p) if isinstance(p, str) else p for p in (first, second))
    for prompt in (one, other):
        if not 0 < len(prompt.text) <= MAX_LENGTH:
            raise ValueError(_("A prompt has 1 to {max_length} characters.").format(max_length=MAX_LENGTH))
    probe = _PrefixCacheProbe(tokenizer, block_size)
    tokens = probe.tokens(one), probe.tokens(other)
    difference = first_difference(*tokens)
    num_common = len(tokens[0]) if difference is None else difference
    shared = probe.num_shared_blocks(*tokens)
    one_pieces, other_pieces = (tuple(map(tokenizer.display, ids)) for ids in tokens)
    return SharingAnswer(
        tokens=(tuple(tokens[0]), tuple(tokens[1])),
        pieces=(one_pieces, other_pieces),
        control=(probe.control(tokens[0]), probe.control(tokens[1])),
        block_size=block_size,
        first_difference=difference,
        num_common_tokens=num_common,
        num_shared_blocks=shared,
        reasons=(
            *_doubled_marks(tokenizer.bos_token_id, tokens),
            *_reasons(one, other, tokens, num_common, block_size),
        ),
        edit=_smallest_edit(probe, one, other, tokens, shared),
    )


class _PrefixCacheProbe:
    """Tokenizes prompts as the engine does and asks its prefix cache what they share."""

    def __init__(self, tokenizer: Tokenizer, block_size: int) -> None:
        self.tokenizer = tokenizer
        self.block_size = block_size

    def rendered(self, prompt: TypedPrompt) -> str:
        if not prompt.as_chat:
            return prompt.text
        return self.tokenizer.render_chat(_messages(prompt))

    def tokens(self, prompt: TypedPrompt) -> list[int]:
        if prompt.as_chat:
            return self.tokenizer.encode_chat(_messages(prompt))
        return self.tokenizer.encode(prompt.text)

    def control(self, token_ids: list[int]) -> frozenset[int]:
        """Positions of the control tokens."""
        return frozenset(at for at, token_id in enumerate(token_ids) if self.tokenizer.is_special(token_id))

    def num_shared_blocks(self, first: list[int], second: list[int]) -> int:
        """Blocks that the second prompt finds when the first was computed before it."""
        longest = max(len(first), len(second))
        config = EngineConfig(
            block_size=self.block_size,
            num_blocks=2 * (longest // self.block_size + 1),
            max_model_len=longest,
            max_num_batched_tokens=max(8, longest),
        )
        engine = Engine(
            config, EngineComponents(self.tokenizer, NoModel(), LogitsSampler(), None, self.tokenizer.vocab_size, {})
        )
        for prompt in (first, second):
            engine.add_request(prompt, SamplingParams(max_tokens=0))
            engine.step()
        queries = [event for event in engine.trace if isinstance(event, PrefixQueried)]
        return queries[-1].num_hit_tokens // self.block_size


def _messages(prompt: TypedPrompt) -> list[dict[str, str]]:
    return [{"role": "user", "content": prompt.text}]


def _doubled_marks(bos_token_id: int | None, tokens: tuple[list[int], list[int]]) -> Iterator[str]:
    """A beginning-of-text token typed before the tokenizer's own moves everything after it, and is easily missed."""
    texts = (
        N_(
            "The first prompt begins with {count} beginning-of-text tokens where models expect one: the tokenizer "
            "adds its own to what is typed, so every token after it is one position further on."
        ),
        N_(
            "The second prompt begins with {count} beginning-of-text tokens where models expect one: the tokenizer "
            "adds its own to what is typed, so every token after it is one position further on."
        ),
    )
    for text, token_ids in zip(texts, tokens, strict=True):
        count = next((at for at, token_id in enumerate(token_ids) if token_id != bos_token_id), len(token_ids))
        if bos_token_id is not None and count > 1:
            yield _(text).format(count=count)


def _reasons(
    one: TypedPrompt, other: TypedPrompt, tokens: tuple[list[int], list[int]], num_common: int, block_size: int
) -> Iterator[str]:
    shortest = min(map(len, tokens))
    if one.as_chat != other.as_chat:
        yield _("Only one of the prompts is wrapped in the chat template, so already their first tokens differ.")
    if one.text != other.text and one.text.strip() == other.text.strip():
        yield _(
            "They differ only in spaces at the start or the end. A space is part of a token, so the token is a "
            "different one."
        )
    elif one.text[:1].isspace() != other.text[:1].isspace():
        yield _("One begins with a space and the other does not, which makes their first tokens different.")
    if num_common < shortest:
        partial = num_common % block_size
        yield _(
            "Token {num_common} is the first that differs. Keys and values depend on every token before them, "
            "so nothing after it can be shared."
        ).format(num_common=num_common)
        if partial:
            yield counted(
                "The {n} common token before it is in a block that also has different tokens, and only whole blocks "
                "are shared.",
                "The {n} common tokens before it are in a block that also has different tokens, and only whole blocks "
                "are shared.",
                partial,
            )
    elif shortest % block_size:
        yield counted(
            "The shorter prompt ends inside a block: its last {n} token does not fill a block, and only full blocks "
            "can be found.",
            "The shorter prompt ends inside a block: its last {n} tokens do not fill a block, and only full blocks "
            "can be found.",
            shortest % block_size,
        )
    if num_common == len(tokens[1]) and num_common % block_size == 0:
        yield _(
            "The last token of a prompt is always computed, because its logits are needed, so its block is not taken "
            "from the cache."
        )


def _smallest_edit(
    probe: _PrefixCacheProbe, one: TypedPrompt, other: TypedPrompt, tokens: tuple[list[int], list[int]], shared: int
) -> Edit | None:
    """The cheapest text that begins as the first prompt does, for one block more, and ends as the second did."""
    needed = (shared + 1) * probe.block_size
    if one.as_chat != other.as_chat or len(tokens[0]) < needed:
        return None
    head = _text_of(probe, one, tokens[0][:needed])
    for cost, kept_from in sorted(_costs(head, other.text))[:MAX_TRIES]:
        for text, extra in _continuations(one.text, head, other.text[kept_from:]):
            found = probe.num_shared_blocks(tokens[0], probe.tokens(TypedPrompt(text, other.as_chat)))
            if found > shared:
                return Edit(text, cost + extra, found)
    return None


def _text_of(probe: _PrefixCacheProbe, prompt: TypedPrompt, token_ids: list[int]) -> str:
    """The beginning of the prompt's text that these tokens of it cover, in whole characters."""
    num_bytes = sum(len(probe.tokenizer.piece(t)) for t in token_ids if prompt.as_chat or not _is_mark(probe, t))
    rendered = probe.rendered(prompt)
    start = rendered.find(prompt.text)
    num_characters = 0
    while num_bytes > 0 and num_characters < len(rendered):
        num_bytes -= len(rendered[num_characters].encode("utf-8", "replace"))
        num_characters += 1
    return prompt.text[: max(0, num_characters - start)]


def _is_mark(probe: _PrefixCacheProbe, token_id: int) -> bool:
    return probe.tokenizer.is_special(token_id)


def _continuations(first: str, head: str, rest: str) -> Iterator[tuple[str, int]]:
    """The rest behind the head; with one more character of the first prompt, or a space, where they would merge."""
    yield head + rest, 0
    if first[len(head) : len(head) + 1]:
        yield head + first[len(head)] + rest, 1
    yield f"{head} {rest}", 1


def _costs(head: str, text: str) -> Iterator[tuple[int, int]]:
    """(characters to insert, delete or replace to turn text[:j] into head, j) for every j (Levenshtein distance).

    An equal beginning costs nothing and is left out of the table, whose size is the product of what remains.
    """
    difference = first_difference(head, text)
    equal = len(head) if difference is None else difference
    yield from ((len(head) - j, j) for j in range(equal))
    rest = np.array([ord(character) for character in text[equal:]], np.int64)
    columns = np.arange(len(rest) + 1)
    row = columns
    for wanted in head[equal:]:
        kept_or_replaced = np.minimum(row[1:] + 1, row[:-1] + (rest != ord(wanted)))
        row = np.concatenate(([row[0] + 1], kept_or_replaced))
        row = columns + np.minimum.accumulate(row - columns)  # one column after another: insertions
    yield from zip(row.tolist(), range(equal, len(text) + 1), strict=True)
