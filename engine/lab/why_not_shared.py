"""Why two prompts share no more blocks than they do, and the smallest edit that makes them share one more.

    answer = why_not_shared(tokenizer, 4, "The red fox ran", " The red fox sat")
    answer.num_shared_blocks, answer.reasons, answer.edit

Blocks are shared whole, from the first token on, and one token is always left to compute. Every count is the
engine's own: the two prompts run through its prefix cache (no model: a look-up needs tokens only).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from engine.config import EngineConfig
from engine.engine import Engine
from engine.events import PrefixQueried, plural
from engine.lab.scratch import first_difference
from engine.parts import EngineParts
from engine.sampler import Sampler
from engine.sampling_params import SamplingParams
from engine.scripted import NoModel
from engine.tokenizer import Tokenizer

MAX_LENGTH = 2_000
"""Characters of a prompt: the search for an edit takes time that grows with the product of the lengths."""
MAX_TRIES = 40
"""Edits tried, cheapest first; where tokens merge across the seam, a cheap one may not do."""


@dataclass(frozen=True, slots=True)
class Prompt:
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
    `reasons`: why it is not one more, in sentences.
    """

    tokens: tuple[tuple[int, ...], tuple[int, ...]]
    pieces: tuple[tuple[str, ...], tuple[str, ...]]
    block_size: int
    first_difference: int | None
    num_common_tokens: int
    num_shared_blocks: int
    reasons: tuple[str, ...]
    edit: Edit | None


def why_not_shared(tokenizer: Tokenizer, block_size: int, first: Prompt | str, second: Prompt | str) -> SharingAnswer:
    """Raises ValueError when a prompt is empty or longer than MAX_LENGTH, or the model has no chat template."""
    one, other = (Prompt(p) if isinstance(p, str) else p for p in (first, second))
    for prompt in (one, other):
        if not 0 < len(prompt.text) <= MAX_LENGTH:
            raise ValueError(f"A prompt has 1 to {MAX_LENGTH} characters.")
    bench = _Bench(tokenizer, block_size)
    tokens = bench.tokens(one), bench.tokens(other)
    difference = first_difference(*tokens)
    num_common = len(tokens[0]) if difference is None else difference
    shared = bench.num_shared_blocks(*tokens)
    one_pieces, other_pieces = (tuple(map(tokenizer.display, ids)) for ids in tokens)
    return SharingAnswer(
        tokens=(tuple(tokens[0]), tuple(tokens[1])),
        pieces=(one_pieces, other_pieces),
        block_size=block_size,
        first_difference=difference,
        num_common_tokens=num_common,
        num_shared_blocks=shared,
        reasons=tuple(_reasons(one, other, tokens, num_common, block_size)),
        edit=_smallest_edit(bench, one, other, tokens, shared),
    )


class _Bench:
    """Tokens as the engine gets them, and the blocks that its prefix cache finds."""

    def __init__(self, tokenizer: Tokenizer, block_size: int) -> None:
        self.tokenizer = tokenizer
        self.block_size = block_size

    def rendered(self, prompt: Prompt) -> str:
        if not prompt.as_chat:
            return prompt.text
        return self.tokenizer.render_chat([{"role": "user", "content": prompt.text}])

    def tokens(self, prompt: Prompt) -> list[int]:
        return self.tokenizer.encode(self.rendered(prompt), add_special_tokens=not prompt.as_chat)

    def num_shared_blocks(self, first: list[int], second: list[int]) -> int:
        """Blocks that the second prompt finds when the first was computed before it."""
        longest = max(len(first), len(second))
        config = EngineConfig(
            block_size=self.block_size,
            num_blocks=2 * (longest // self.block_size + 1),
            max_model_len=longest,
            max_num_batched_tokens=max(8, longest),
        )
        engine = Engine(config, EngineParts(self.tokenizer, NoModel(), Sampler(), None, self.tokenizer.vocab_size, {}))
        for prompt in (first, second):
            engine.add_request(prompt, SamplingParams(max_tokens=0))
            engine.step()
        queries = [event for event in engine.trace if isinstance(event, PrefixQueried)]
        return queries[-1].num_hit_tokens // self.block_size


def _reasons(
    one: Prompt, other: Prompt, tokens: tuple[list[int], list[int]], num_common: int, block_size: int
) -> Iterator[str]:
    shortest = min(map(len, tokens))
    if one.as_chat != other.as_chat:
        yield "Only one of the prompts is wrapped in the chat template, so their first tokens already differ in kind."
    if one.text != other.text and one.text.strip() == other.text.strip():
        yield "They differ in blanks at the start or the end only. A blank is part of a token: with it, another token."
    elif one.text[:1].isspace() != other.text[:1].isspace():
        yield "One begins with a blank and the other does not, which makes their first tokens different."
    if num_common < shortest:
        partial = num_common % block_size
        yield (
            f"Token {num_common} is the first that differs. Keys and values depend on every token before them, "
            "so nothing behind it can be shared."
        )
        if partial:
            yield f"The {plural(partial, 'common token')} before it lie in a block that is not equal as a whole."
    elif shortest % block_size:
        yield (
            f"The shorter prompt ends inside a block: its last {plural(shortest % block_size, 'token')} fill no block, "
            "and only full blocks can be found."
        )
    if num_common == len(tokens[1]) and num_common % block_size == 0:
        yield "The last token of a prompt is always computed, for its scores, so its block is not taken from the cache."


def _smallest_edit(
    bench: _Bench, one: Prompt, other: Prompt, tokens: tuple[list[int], list[int]], shared: int
) -> Edit | None:
    """The cheapest text that begins as the first prompt does, for one block more, and ends as the second did."""
    needed = (shared + 1) * bench.block_size
    if one.as_chat != other.as_chat or len(tokens[0]) < needed:
        return None
    head = _text_of(bench, one, tokens[0][:needed])
    for cost, kept_from in sorted(_costs(head, other.text))[:MAX_TRIES]:
        for text, extra in _continuations(one.text, head, other.text[kept_from:]):
            found = bench.num_shared_blocks(tokens[0], bench.tokens(Prompt(text, other.as_chat)))
            if found > shared:
                return Edit(text, cost + extra, found)
    return None


def _text_of(bench: _Bench, prompt: Prompt, token_ids: list[int]) -> str:
    """The beginning of the prompt's text that these tokens of it cover, in whole characters."""
    num_bytes = sum(len(bench.tokenizer.piece(t)) for t in token_ids if prompt.as_chat or not _is_mark(bench, t))
    rendered = bench.rendered(prompt)
    start = rendered.find(prompt.text)
    num_characters = 0
    while num_bytes > 0 and num_characters < len(rendered):
        num_bytes -= len(rendered[num_characters].encode("utf-8", "replace"))
        num_characters += 1
    return prompt.text[: max(0, num_characters - start)]


def _is_mark(bench: _Bench, token_id: int) -> bool:
    return bench.tokenizer.is_special(token_id)


def _continuations(first: str, head: str, rest: str) -> Iterator[tuple[str, int]]:
    """The rest behind the head; with one more character of the first prompt, or a blank, where they would merge."""
    yield head + rest, 0
    if first[len(head) : len(head) + 1]:
        yield head + first[len(head)] + rest, 1
    yield f"{head} {rest}", 1


def _costs(head: str, text: str) -> Iterator[tuple[int, int]]:
    """(characters to insert, delete or replace to turn text[:j] into head, j) for every j (Levenshtein distance)."""
    row = list(range(len(text) + 1))
    for i, wanted in enumerate(head, 1):
        previous, row[0] = row[0], i
        for j, there in enumerate(text, 1):
            previous, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, previous + (wanted != there))
    return zip(row, range(len(text) + 1), strict=True)
