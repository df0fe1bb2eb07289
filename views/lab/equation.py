"""Experiment "The equation is unchanged": what it asks for, and its report as tables and pictures."""

from __future__ import annotations

import threading
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

from course.equation.lesson import LESSON
from course.messages import Facts, Plural, Text
from course.scene import Scene
from engine.config import EngineConfig
from engine.i18n import N_, _
from engine.model.kv_cache_size import size_in_words
from engine.trace.trace import Trace
from views.elements.token_chips import chip
from views.figures import Figure
from views.html_parts import escaped
from views.lab.controls import LONGEST_PROMPT, prompts_of
from views.lesson_picture import FrameTexts, Picture, first_with_tokens, picture
from views.server.model_registry import ReadyModel
from views.url_values import ChoiceRule, NumberRule, TextRule

if TYPE_CHECKING:
    from course.equation.experiment import ComparedPrompt, EquationReport
    from engine.model.weights.load import LoadedModel

KEY, STEP = LESSON.key, "step"
MOST_PROMPTS = 4
PROMPTS = TextRule("prompts", N_("Prompts, one a line"), MOST_PROMPTS * LONGEST_PROMPT)
DEFAULT_PROMPTS = "The capital of France is\nOnce upon a time, a small robot"
MAX_TOKENS = NumberRule("max_tokens", N_("New tokens at most"), 1, 24, 8)
BLOCK_SIZE = NumberRule("block_size", N_("Block size"), 1, 32, 4)
FLOAT32, AS_SERVED = N_("float32"), N_("as the server runs it")
NUMBERS = ChoiceRule("numbers", N_("Precision"), (FLOAT32, AS_SERVED))
RESERVED = NumberRule("reserved", N_("Slots reserved for each"), 32, 256, 128)

EXAMPLES: dict[str, dict[str, int | str]] = {
    N_("Two prompts"): {
        "prompts": DEFAULT_PROMPTS,
        "max_tokens": 8,
        "block_size": 4,
        "reserved": 128,
        "numbers": FLOAT32,
    },
    N_("Blocks of 1"): {"block_size": 1},
    N_("Blocks of 32"): {"block_size": 32},
    N_("As served"): {"numbers": AS_SERVED},
    N_("Other scripts"): {"prompts": "日本の首都は\nمرحبا بالعالم\n👩‍👩‍👧‍👦 means"},
}

FIGURES = (
    Figure(N_("Tokens"), "{tokens}"),
    Figure(N_("Largest logit difference"), "{report.largest_logit_difference:.2g}"),
    Figure(N_("Rounding explains up to"), "{report.tolerance:g}"),
    Figure(N_("Held in contiguous regions"), "{contiguous_size}"),
    Figure(N_("Held in blocks"), "{paged_size}"),
)
EQUAL = Plural(
    "report.num_tokens",
    "**Tokens.** Both layouts sampled the same {n} token.",
    "**Tokens.** Both layouts sampled the same {n} tokens.",
)
NOT_EQUAL = N_(
    "**Tokens.** The two layouts sampled different tokens, marked below. The precision is {report.dtype}; "
    "where two logits are almost equal, its rounding decides. In float32 that is far rarer."
)
LOGITS = N_(
    "**Logits.** No logit of any token in the vocabulary differs by more than "
    "{report.largest_logit_difference:.2g}. The two layouts add in a different order, and in {report.dtype} "
    "rounding explains up to {report.tolerance:g}."
)
TOO_FAR = N_(
    "**Logits.** They differ by up to {report.largest_logit_difference:.2g}, more than the "
    "{report.tolerance:g} that rounding explains in {report.dtype}. This is a bug: please report it."
)
MEMORY = (
    N_(
        "**Memory.** At most, contiguous regions held {contiguous_size} and blocks {paged_size}. The tokens "
        "stored are the same."
    ),
)
FRAME_TEXTS = FrameTexts(
    label=N_("step {value}"),
    figures=(
        Figure(N_("Layout"), "{layout}"),
        Figure(N_("Slots held"), "{waste.num_held}"),
        Figure(N_("Tokens stored"), "{waste.token_states}"),
        Figure(N_("Slots empty"), "{waste.num_empty}"),
    ),
)

_float32_lock = threading.Lock()
_float32_models: WeakValueDictionary[str, LoadedModel] = WeakValueDictionary()
"""Loaded when an experiment wants them; concurrent ones share a copy, and the last one to end releases it."""


@dataclass(frozen=True)
class EquationInputs:
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
    def opening(self) -> int:
        """The step in which the prompts are written."""
        return first_with_tokens(self.paged.scene)

    def facts(self) -> Facts:
        """What the page's templates name."""
        report = self.report
        return {
            "report": report,
            "tokens": _("all equal") if report.are_tokens_equal else _("not equal"),
            "contiguous_size": size_in_words(report.contiguous_bytes),
            "paged_size": size_in_words(report.paged_bytes),
        }

    def verdict(self) -> tuple[Text, ...]:
        """Templates over `facts`."""
        tokens = EQUAL if self.report.are_tokens_equal else NOT_EQUAL
        return tokens, LOGITS if self.report.is_within_tolerance else TOO_FAR, *MEMORY


def compare(model: ReadyModel, inputs: EquationInputs) -> Comparison:
    """Both sides get a memory of the same size. Raises ValueError with a sentence for a prompt that cannot run."""
    from course.equation.experiment import equation  # torch comes with it

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
    weights = model.weights if inputs.numbers == AS_SERVED else _in_float32(model.weights)
    report = equation(weights, config, prompts, inputs.max_tokens)
    return Comparison(
        prompts,
        report,
        _picture(report.contiguous_trace, _("contiguous"), _("One contiguous region for each prompt")),
        _picture(report.paged_trace, _("paged"), _("The same prompts in blocks")),
    )


def _in_float32(weights: LoadedModel) -> LoadedModel:
    """The same weights in float32, where rounding is small. Raises ModelLoadError with one plain sentence."""
    from engine.model.device import resolve_device  # torch comes with it
    from engine.model.weights.load import load_model

    if weights.dtype == "float32":
        return weights
    with _float32_lock:
        loaded = _float32_models.get(weights.name)
        if loaded is None:
            loaded = load_model(weights.name, dtype="float32", device=resolve_device("auto"))
            _float32_models[weights.name] = loaded
        return loaded


def _picture(trace: Trace, layout: str, title: str) -> Picture:
    steps = {step: step for step in range(trace.num_steps + 1)}
    return picture(Scene(trace, steps, "steps"), replace(FRAME_TEXTS, more=lambda _state: {"layout": layout}), title)


def tokens_table(comparison: Comparison, prompt: ComparedPrompt) -> str:
    """Both replies, one token above the other, and how far the logits were apart when they were chosen."""
    paged = _reply(comparison.report.paged_trace, prompt)
    contiguous = _reply(comparison.report.contiguous_trace, prompt)
    pairs = zip(prompt.paged_token_ids, prompt.contiguous_token_ids, strict=True)
    kinds = ["" if a == b else "differs" for a, b in pairs]
    rows = (
        (_("Contiguous"), [chip(piece, kind) for piece, kind in zip(contiguous, kinds, strict=True)]),
        (_("Paged"), [chip(piece, kind) for piece, kind in zip(paged, kinds, strict=True)]),
        (_("Logit difference"), [f"{difference:.2g}" for difference in prompt.logit_differences]),
    )
    body = "".join(
        f'<tr><th scope="row">{name}</th>{"".join(f"<td>{cell}</td>" for cell in cells)}</tr>' for name, cells in rows
    )
    name = escaped(prompt.request_id)
    caption = escaped(_("{name}: tokens of the reply").format(name=prompt.request_id))
    label = escaped(_("Reply to prompt {name}").format(name=prompt.request_id))
    return (
        f'<div class="pv-table pv-tokens" role="region" tabindex="0" aria-label="{label}">'
        f'<table data-tokens-of="{name}"><caption>{caption}</caption>{body}</table></div>'
    )


def text_line(prompt: str, compared: ComparedPrompt) -> str:
    """The prompt and its reply as text."""
    name = escaped(compared.request_id)
    return (
        f'<div class="pv-text" dir="auto"><span class="prompt" data-prompt="{name}">{escaped(prompt)}</span>'
        f'<span class="reply" data-text="{name}">{escaped(compared.text)}</span></div>'
    )


def _reply(trace: Trace, prompt: ComparedPrompt) -> list[str]:
    pieces = trace.at(trace.num_steps).sequences[prompt.request_id].pieces
    return pieces[len(prompt.prompt_token_ids) :]
