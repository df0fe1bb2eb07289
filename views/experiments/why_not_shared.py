"""Experiment "Why didn't these share?": two prompts, held against each other block by block."""

from __future__ import annotations

from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import TYPE_CHECKING

from engine.events import plural
from views.experiments.controls import LONGEST_PROMPT
from views.html_parts import escaped
from views.server import ReadyModel
from views.text_safe import visible_piece
from views.token_chips import chip
from views.told import Facts, Figure
from views.url_values import ChoiceRule, NumberRule, TextRule

if TYPE_CHECKING:
    from engine.lab.why_not_shared import Edit, SharingAnswer

KEY = "why_not_shared"
FIRST = TextRule("first", "The first prompt", LONGEST_PROMPT)
SECOND = TextRule("second", "The second prompt, asked later", LONGEST_PROMPT)
DEFAULT_FIRST = "The quick brown fox jumps over the lazy dog"
DEFAULT_SECOND = " The quick brown fox jumps over the lazy dog"
PLAIN, CHAT = "plain text", "chat message"
FIRST_AS = ChoiceRule("first_as", "The first prompt is", (PLAIN, CHAT))
SECOND_AS = ChoiceRule("second_as", "The second prompt is", (PLAIN, CHAT))
BLOCK_SIZE = NumberRule("block_size", "Block size", 1, 16, 4)

_BOTH_PLAIN: dict[str, int | str] = {"first_as": PLAIN, "second_as": PLAIN, "block_size": 4}
EXAMPLES: dict[str, dict[str, int | str]] = {
    "A leading blank": {"first": DEFAULT_FIRST, "second": DEFAULT_SECOND, **_BOTH_PLAIN},
    "One word": {
        "first": "You are a helpful assistant. Answer in one word. What is the capital of France?",
        "second": "You are a helpful assistant. Answer in one line. What is the capital of France?",
        **_BOTH_PLAIN,
    },
    "A tail that is not full": {
        "first": "The quick brown fox jumps",
        "second": "The quick brown fox jumps over",
        **_BOTH_PLAIN,
    },
    "The same prompt twice": {
        "first": "One two three four five six seven",
        "second": "One two three four five six seven",
        **_BOTH_PLAIN,
    },
    "A chat template": {
        "first": "Tell me a story",
        "second": "Tell me a story",
        "first_as": CHAT,
        "second_as": PLAIN,
        "block_size": 4,
    },
    "The date first": {
        "first": "Today is Monday. You are a helpful assistant who answers in short and plain sentences.",
        "second": "Today is Tuesday. You are a helpful assistant who answers in short and plain sentences.",
        **_BOTH_PLAIN,
    },
}

FIGURES = (
    Figure("Blocks shared", "{answer.num_shared_blocks}"),
    Figure("Equal tokens at the start", "{answer.num_common_tokens}"),
    Figure("First token that differs", "{first_difference}"),
)
EDIT = "Change {edit.num_characters:character} of the second prompt, and it shares {edit.num_shared_blocks:block}:"
NO_EDIT = "No edit of the second prompt that keeps its end can share one more block with the first."


@dataclass(frozen=True)
class Inputs:
    """What decides the result."""

    model: str
    first: str
    second: str
    first_as: str
    second_as: str
    block_size: int


def compare(model: ReadyModel, inputs: Inputs) -> SharingAnswer:
    """Raises ValueError with a sentence for an empty prompt, or a chat without a template."""
    from engine.lab.why_not_shared import Prompt, why_not_shared  # torch comes with it

    return why_not_shared(
        model.weights.tokenizer,
        inputs.block_size,
        Prompt(inputs.first, inputs.first_as == CHAT),
        Prompt(inputs.second, inputs.second_as == CHAT),
    )


def facts(answer: SharingAnswer) -> Facts:
    return {
        "answer": answer,
        "first_difference": "none" if answer.first_difference is None else answer.first_difference,
        "edit": answer.edit,
    }


def blocks_table(answer: SharingAnswer) -> str:
    """One row a block: what both prompts have in it, and whether the second finds it."""
    longest = max(map(len, answer.pieces))
    body = "".join(_row(answer, index) for index in range(-(-longest // answer.block_size)))
    head = "".join(
        f'<th scope="col">{name}</th>' for name in ("Block", "The first prompt", "The second prompt", "Shared?")
    )
    caption = f"Both prompts in blocks of {plural(answer.block_size, 'token')}; blanks are drawn as ·"
    return (
        f'<div class="pv-table pv-tall" role="region" tabindex="0" aria-label="Both prompts, block by block">'
        f"<table data-blocks><caption>{caption}</caption>"
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def _row(answer: SharingAnswer, index: int) -> str:
    is_shared = index < answer.num_shared_blocks
    cells = "".join(f"<td>{_tokens(answer, prompt, index)}</td>" for prompt in (0, 1))
    word = "yes" if is_shared else "no"
    return f'<tr data-shared="{str(is_shared).lower()}"><th scope="row">{index}</th>{cells}<td>{word}</td></tr>'


def _tokens(answer: SharingAnswer, prompt: int, index: int) -> str:
    start, size = index * answer.block_size, answer.block_size
    kinds = [_kind(answer, position) for position in range(start, start + size)]
    pieces = answer.pieces[prompt][start : start + size]
    empty = size - len(pieces) if pieces else 0
    chips = "".join(chip(piece, kind) for piece, kind in zip(pieces, kinds, strict=False))
    return chips + '<span class="pv-piece empty" aria-hidden="true">&nbsp;</span>' * empty


def _kind(answer: SharingAnswer, position: int) -> str:
    if position < answer.num_shared_blocks * answer.block_size:
        return "shared"
    if position < answer.num_common_tokens:
        return "common"
    return "differs"


def reasons(answer: SharingAnswer) -> str:
    """Why it is not one block more, in the engine's sentences."""
    return f'<ul class="pv-beats">{"".join(f"<li>{escaped(reason)}</li>" for reason in answer.reasons)}</ul>'


def edited(old: str, edit: Edit) -> str:
    """The edit in the second prompt: what goes is struck out, what comes is underlined, blanks of both visible."""
    parts = []
    for operation, i, j, k, m in SequenceMatcher(None, old, edit.text, autojunk=False).get_opcodes():
        if operation == "equal":
            parts.append(escaped(old[i:j]))
            continue
        parts.append(f"<del>{escaped(_visible(old[i:j]))}</del>" if j > i else "")
        parts.append(f"<ins>{escaped(_visible(edit.text[k:m]))}</ins>" if m > k else "")
    return f'<div class="pv-text pv-edit" data-edit>{"".join(parts)}</div>'


def _visible(text: str) -> str:
    return "".join(map(visible_piece, text))
