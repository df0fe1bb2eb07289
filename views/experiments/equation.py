"""Experiment "The equation is unchanged": what it asks for, and its report as tables and pictures."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.config import EngineConfig
from engine.model_facts import size_in_words
from engine.scenes.scene import Scene
from engine.trace import Trace
from views.experiments.controls import LONGEST_PROMPT, prompts_of
from views.experiments.float32_weights import float32_weights
from views.html_parts import escaped
from views.lesson_picture import Picture, Telling, picture
from views.server import ReadyModel
from views.token_chips import chip
from views.told import Facts, Figure
from views.url_values import ChoiceRule, NumberRule, TextRule

if TYPE_CHECKING:
    from engine.lab.equation import ComparedPrompt, EquationReport

KEY, STEP = "equation", "step"
MOST_PROMPTS = 4
PROMPTS = TextRule("prompts", "Prompts, one a line", MOST_PROMPTS * LONGEST_PROMPT)
DEFAULT_PROMPTS = "The capital of France is\nOnce upon a time, a small robot"
MAX_TOKENS = NumberRule("max_tokens", "New tokens at most", 1, 24, 8)
BLOCK_SIZE = NumberRule("block_size", "Block size", 1, 32, 4)
FLOAT32, AS_SERVED = "float32", "as the server runs it"
NUMBERS = ChoiceRule("numbers", "Numbers", (FLOAT32, AS_SERVED))
RESERVED = NumberRule("reserved", "Slots reserved for each", 32, 256, 128)

EXAMPLES: dict[str, dict[str, int | str]] = {
    "Two prompts": {"prompts": DEFAULT_PROMPTS, "max_tokens": 8, "block_size": 4, "reserved": 128, "numbers": FLOAT32},
    "Blocks of 1": {"block_size": 1},
    "Blocks of 32": {"block_size": 32},
    "Coarser numbers": {"numbers": AS_SERVED},
    "Other writing": {"prompts": "日本の首都は\nمرحبا بالعالم\n👩‍👩‍👧‍👦 means"},
}

FIGURES = (
    Figure("Tokens", "{tokens}"),
    Figure("Largest difference of two logits", "{report.largest_logit_difference:.2g}"),
    Figure("Rounding explains up to", "{report.tolerance:g}"),
    Figure("Held in reservations", "{contiguous_size}"),
    Figure("Held in blocks", "{paged_size}"),
)
EQUAL = "**Tokens.** Both sides chose the same {report.num_tokens:token}, one by one."
NOT_EQUAL = (
    "**Tokens.** The sides chose different tokens, marked below. The numbers are {report.dtype}, and where two tokens "
    "score almost the same, its rounding decides. In float32 it decides far less often."
)
LOGITS = (
    "**Logits.** No score of any token in the vocabulary differs by more than "
    "{report.largest_logit_difference:.2g}. The two sides add in another order, and in {report.dtype} rounding "
    "explains up to {report.tolerance:g}."
)
TOO_FAR = (
    "**Logits.** Scores differ by up to {report.largest_logit_difference:.2g}, which is more than the "
    "{report.tolerance:g} that rounding explains in {report.dtype}. That is a fault worth reporting."
)
MEMORY = (
    "**Memory.** At the fullest moment reservations held {contiguous_size}, blocks {paged_size}. "
    "The tokens stored are the same.",
)
TELLING = Telling(
    label="step {value}",
    figures=(
        Figure("Slots held", "{waste.num_held}"),
        Figure("Tokens stored", "{waste.token_states}"),
        Figure("Slots empty", "{waste.num_empty}"),
    ),
)


@dataclass(frozen=True)
class Inputs:
    """What decides the result."""

    model: str
    text: str
    max_tokens: int
    block_size: int
    reserved: int
    numbers: str


@dataclass(frozen=True)
class Comparison:
    """The report and its pictures. Value k of both: memory after step k."""

    prompts: tuple[str, ...]
    report: EquationReport
    contiguous: Picture
    paged: Picture

    @property
    def fullest(self) -> int:
        """In the last step the replies end and hand their memory back; before it they hold most."""
        return max(self.paged.values[-1] - 1, 0)

    def facts(self) -> Facts:
        report = self.report
        return {
            "report": report,
            "tokens": "all equal" if report.are_tokens_equal else "not equal",
            "contiguous_size": size_in_words(report.contiguous_bytes),
            "paged_size": size_in_words(report.paged_bytes),
        }

    def verdict(self) -> tuple[str, ...]:
        """Templates over `facts`."""
        tokens = EQUAL if self.report.are_tokens_equal else NOT_EQUAL
        return tokens, LOGITS if self.report.is_within_tolerance else TOO_FAR, *MEMORY


def compare(model: ReadyModel, inputs: Inputs) -> Comparison:
    """Both sides get a memory of the same size. Raises ValueError with a sentence for a prompt that cannot run."""
    from engine.lab.equation import equation  # torch comes with it

    prompts = prompts_of(inputs.text, MOST_PROMPTS)
    num_requests = len(prompts)
    config = EngineConfig(
        model=inputs.model,
        block_size=inputs.block_size,
        num_blocks=num_requests * -(-inputs.reserved // inputs.block_size),
        max_model_len=inputs.reserved,
        max_num_batched_tokens=max(num_requests * inputs.reserved, 8),
        enable_prefix_caching=False,
    )
    weights = model.weights if inputs.numbers == AS_SERVED else float32_weights(model.weights)
    report = equation(weights, config, prompts, inputs.max_tokens)
    return Comparison(
        prompts,
        report,
        _picture(report.contiguous_trace, "One reservation for each prompt"),
        _picture(report.paged_trace, "The same prompts in blocks"),
    )


def _picture(trace: Trace, title: str) -> Picture:
    return picture(Scene(trace, {step: step for step in range(trace.num_steps + 1)}, "steps"), TELLING, title)


def tokens_table(comparison: Comparison, prompt: ComparedPrompt) -> str:
    """Both replies, one token above the other, and how far the logits were apart when they were chosen."""
    paged = _reply(comparison.report.paged_trace, prompt)
    contiguous = _reply(comparison.report.contiguous_trace, prompt)
    pairs = zip(prompt.paged_token_ids, prompt.contiguous_token_ids, strict=True)
    kinds = ["" if a == b else "differs" for a, b in pairs]
    rows = (
        ("Contiguous", [chip(piece, kind) for piece, kind in zip(contiguous, kinds, strict=True)]),
        ("Paged", [chip(piece, kind) for piece, kind in zip(paged, kinds, strict=True)]),
        ("Logits apart by", [f"{difference:.2g}" for difference in prompt.logit_differences]),
    )
    body = "".join(
        f'<tr><th scope="row">{name}</th>{"".join(f"<td>{cell}</td>" for cell in cells)}</tr>' for name, cells in rows
    )
    name = escaped(prompt.request_id)
    return (
        f'<div class="pv-table pv-tokens" role="region" tabindex="0" aria-label="Reply to prompt {name}">'
        f'<table data-tokens-of="{name}"><caption>{name}: tokens of the reply</caption>{body}</table></div>'
    )


def text_line(prompt: str, compared: ComparedPrompt) -> str:
    """The prompt and its reply as text."""
    name = escaped(compared.request_id)
    return (
        f'<div class="pv-text"><span class="prompt" data-prompt="{name}">{escaped(prompt)}</span>'
        f'<span class="reply" data-text="{name}">{escaped(compared.text)}</span></div>'
    )


def _reply(trace: Trace, prompt: ComparedPrompt) -> list[str]:
    pieces = trace.at(trace.num_steps).sequences[prompt.request_id].pieces
    return pieces[len(prompt.prompt_token_ids) :]
