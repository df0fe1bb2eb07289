"""Experiment "Preemption, live": requests in a pool too small for them, recompute against swap."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pandas as pd

from course.messages import Facts, Plural, Text
from course.preemption.lesson import LESSON
from course.scene import Scene
from engine.config import EngineConfig
from engine.i18n import N_, _
from engine.sampling_params import SamplingParams
from engine.trace.state import CacheState
from engine.trace.usage import usage_of
from views.elements.token_chips import reply_card, reply_cards
from views.figures import Figure
from views.lab.controls import LONGEST_PROMPT, prompts_of
from views.lesson_picture import FrameTexts, Picture, picture
from views.server.model_registry import ReadyModel
from views.url_values import NumberRule, TextRule

if TYPE_CHECKING:
    from course.preemption.cost import PreemptionCost
    from course.preemption.experiment import PreemptionComparison, PreemptionRun

KEY, STEP, TIMES = LESSON.key, "step", "preemption_times"
MOST_PROMPTS = 4
PROMPTS = TextRule("prompts", N_("Prompts, one a line"), MOST_PROMPTS * LONGEST_PROMPT)
DEFAULT_PROMPTS = "The capital of France is\nOnce upon a time, a small robot\nThree primary colours are"
POOL = NumberRule("num_blocks", N_("Blocks in the pool"), 2, 96, 21)
BLOCK_SIZE = NumberRule("block_size", N_("Block size"), 1, 16, 4)
MAX_TOKENS = NumberRule("max_tokens", N_("New tokens each"), 4, 48, 24)

RECOMPUTE, SWAP = N_("Recompute"), N_("Swap")
COST, TIME, HAPPENED = N_("What it cost"), N_("Step"), N_("What happened")
MEASURED, MEDIAN, LOWEST, HIGHEST = N_("Measured, ms"), N_("Median"), N_("Lowest"), N_("Highest")
WAY_NAMES = {"recompute": N_("recompute"), "swap": N_("swap")}
PREEMPTED = N_("{name} preempted")
BACK = {"recompute": N_("{name} computed again"), "swap": N_("{name} copied back")}
NOBODY = Plural(
    "num_blocks",
    "**No request was preempted.** All of them fit in {n} block to the end. Make the pool smaller.",
    "**No request was preempted.** All of them fit in {n} blocks to the end. Make the pool smaller.",
)
SOMEBODY = (
    N_("**Step {first[0]}** preempts {first[1]}: another request needed a block, and none was free."),
    Plural(
        "recompute.num_recomputed_tokens",
        "**Recompute** freed the blocks and computed {n} token a second time.",
        "**Recompute** freed the blocks and computed {n} tokens a second time.",
    ),
    Plural(
        "swap.num_swapped_out",
        "**Swap** copied {n} block out and {swap.num_swapped_in} back.",
        "**Swap** copied {n} blocks out and {swap.num_swapped_in} back.",
    ),
)
MORE = N_(
    "**Recompute: {cost.recompute.median:.2f} ms more** than the steps beside it took "
    "({cost.recompute.lowest:.2f} to {cost.recompute.highest:.2f} in {repeats} warm runs)."
)
NO_MORE = N_(
    "**Recompute:** its steps could not be told apart from the steps before and after ({cost.recompute.lowest:.2f} to "
    "{cost.recompute.highest:.2f} ms more in {repeats} warm runs). A larger model, longer texts or a "
    "quieter machine would show it."
)
COPIES = N_(
    "**Swap: {cost.swap.median:.2f} ms of copying**, out and in ({cost.swap.lowest:.2f} to {cost.swap.highest:.2f})."
)
ON_THIS_MACHINE = N_(
    "Both ways ran in turn on this machine. The paper's swap goes over a bus between a GPU and the CPU; where "
    "the model runs on the CPU itself, blocks are copied within one memory."
)
NOT_MEASURED = N_("No step computed tokens again, so there is nothing to measure.")
SAME = N_("**Both ways give the same reply.** The preempted request continues where it stopped.")
OTHER = N_(
    "**The replies differ** where marked below. Recomputing runs many tokens in one step and adds in a "
    "different order, so where two logits are almost equal, rounding in {dtype} can change the choice."
)
FRAME_TEXTS = FrameTexts(
    label=N_("step {value}{happened}"),
    figures=(
        Figure(N_("Restored by"), "{way}"),
        Figure(N_("Blocks used"), "{usage.num_used_blocks}"),
        Figure(N_("Blocks free"), "{usage.num_free_blocks}"),
        Figure(N_("Preempted so far"), "{counters.num_preemptions}"),
        Figure(N_("Tokens computed again"), "{counters.num_recomputed_tokens}"),
    ),
    more=lambda state: {"counters": state.counters, "usage": usage_of(state)},
)


@dataclass(frozen=True)
class PreemptionInputs:
    """What decides the result."""

    model: str
    text: str
    num_blocks: int
    block_size: int
    max_tokens: int


@dataclass(frozen=True)
class Preempted:
    """Both runs with their pictures. Value k of both: memory after step k."""

    comparison: PreemptionComparison
    recompute: Picture
    swap: Picture
    num_blocks: int
    largest_that_preempts: int | None
    model: ReadyModel

    @property
    def is_anybody_preempted(self) -> bool:
        """Whether a request was preempted in the run that recomputes."""
        return self.comparison.recompute.num_preemptions > 0

    @property
    def first_preemption(self) -> int:
        """Its step, or the last step when there is none."""
        preempted = self.comparison.recompute.preempted
        return preempted[0][0] if preempted else self.comparison.recompute.num_steps

    def facts(self) -> Facts:
        """What the page's templates name."""
        return {
            "recompute": self.comparison.recompute,
            "swap": self.comparison.swap,
            "first": self.comparison.recompute.preempted[0] if self.is_anybody_preempted else None,
            "num_blocks": self.num_blocks,
            "dtype": self.model.weights.dtype,
        }

    def verdict(self) -> tuple[Text, ...]:
        """Templates over `facts`."""
        same = SAME if self.comparison.are_replies_equal else OTHER
        return (*SOMEBODY, same) if self.is_anybody_preempted else (NOBODY,)


def preempt(model: ReadyModel, inputs: PreemptionInputs) -> Preempted:
    """Raises ValueError with a sentence when a prompt cannot run alone in this pool."""
    from course.preemption.experiment import blocks_that_preempt, compare_preemption  # torch comes with it
    from engine.inspect.scratch import components_factory

    config, prompts, params = _what_to_run(model, inputs)
    lengths = [len(model.weights.tokenizer.encode(prompt)) for prompt in prompts]
    comparison = compare_preemption(components_factory(model.weights), config, prompts, params)
    return Preempted(
        comparison,
        _picture(comparison.recompute, _("Recompute: blocks are freed and computed again")),
        _picture(comparison.swap, _("Swap: blocks are copied out and in")),
        inputs.num_blocks,
        blocks_that_preempt(config, lengths, inputs.max_tokens),
        model,
    )


def measure(model: ReadyModel, inputs: PreemptionInputs) -> PreemptionCost | None:
    """The same requests again, warm and several times; None when there is nothing to measure. Raises as `preempt`."""
    from course.preemption.cost import preemption_cost
    from engine.inspect.scratch import components_factory

    return preemption_cost(components_factory(model.weights), *_what_to_run(model, inputs))


def _what_to_run(model: ReadyModel, inputs: PreemptionInputs) -> tuple[EngineConfig, tuple[str, ...], SamplingParams]:
    prompts = prompts_of(inputs.text, MOST_PROMPTS)
    lengths = [len(model.weights.tokenizer.encode(prompt)) for prompt in prompts]
    config = EngineConfig(
        model=inputs.model,
        block_size=inputs.block_size,
        num_blocks=inputs.num_blocks,
        max_model_len=max(lengths) + inputs.max_tokens,
        max_num_batched_tokens=max(sum(lengths) + len(lengths) * inputs.max_tokens, 8),
    )
    return config, prompts, SamplingParams(max_tokens=inputs.max_tokens, ignore_eos=True)


def _picture(run: PreemptionRun, title: str) -> Picture:
    steps, events = {step: step for step in range(run.num_steps + 1)}, happened(run)

    def more(state: CacheState) -> Facts:
        return {
            **FRAME_TEXTS.more(state),
            "way": _(WAY_NAMES[run.mode]),
            "happened": f": {events[state.step]}" if state.step in events else "",
        }

    return picture(Scene(run.trace, steps, "steps"), replace(FRAME_TEXTS, more=more, focus=_preempted_first), title)


def happened(run: PreemptionRun) -> dict[int, str]:
    """The steps in which somebody was preempted or came back, in words."""
    by_step: dict[int, list[str]] = {}
    for moments, words in ((run.preempted, PREEMPTED), (run.resumed, BACK[run.mode])):
        for step, request_id in moments:
            by_step.setdefault(step, []).append(_(words).format(name=request_id))
    return {step: ", ".join(words) for step, words in by_step.items()}


def _preempted_first(state: CacheState) -> str | None:
    """The sequence worth looking at: of a request that was put aside."""
    aside = [request for request in state.requests.values() if request.status in ("preempted", "swapped")]
    return aside[0].seq_ids[0] if aside else None


def costs_frame(comparison: PreemptionComparison) -> pd.DataFrame:
    """One row a cost, a column a way."""
    rows = [
        (name, getattr(comparison.recompute, field), getattr(comparison.swap, field))
        for name, field in (
            (_("Preemptions"), "num_preemptions"),
            (_("Tokens computed a second time"), "num_recomputed_tokens"),
            (_("Blocks copied out"), "num_swapped_out"),
            (_("Blocks copied back"), "num_swapped_in"),
            (_("Steps until all were done"), "num_steps"),
        )
    ]
    return pd.DataFrame(rows, columns=[COST, RECOMPUTE, SWAP])


def what_it_took(cost: PreemptionCost | None) -> tuple[tuple[Text, ...], Facts]:
    """Templates and their facts: what was measured, or why nothing was."""
    if cost is None:
        return (NOT_MEASURED,), {}
    verdict = MORE if cost.recompute.lowest > 0 else NO_MORE
    return (verdict, COPIES, ON_THIS_MACHINE), {"cost": cost, "repeats": len(cost.recompute.times_ms)}


def measured_frame(cost: PreemptionCost) -> pd.DataFrame:
    """One row a thing that was measured: the median of all runs, and the two ends."""
    rows = (
        (N_("Recompute: the steps that compute again"), cost.recompute_steps),
        (N_("Recompute: the steps beside them"), cost.adjacent_steps),
        (N_("Recompute: the difference"), cost.recompute),
        (N_("Swap: copies out"), cost.swap_out),
        (N_("Swap: copies in"), cost.swap_in),
        (N_("Swap: both copies"), cost.swap),
    )
    return pd.DataFrame(
        [(name, *(f"{ms:.2f}" for ms in (times.median, times.lowest, times.highest))) for name, times in rows],
        columns=[MEASURED, MEDIAN, LOWEST, HIGHEST],
    )


def times_frame(comparison: PreemptionComparison, cost: PreemptionCost) -> pd.DataFrame:
    """One row a step: its median time either way, in ms (blank where a way was done), and who was preempted or back."""
    by_recompute, by_swap = ([round(times.median, 2) for times in way] for way in cost.step_times)
    events = marks(comparison)
    return pd.DataFrame(
        {
            TIME: step,
            RECOMPUTE: by_recompute[step - 1] if step <= len(by_recompute) else None,
            SWAP: by_swap[step - 1] if step <= len(by_swap) else None,
            HAPPENED: events.get(step, ""),
        }
        for step in range(1, max(len(by_recompute), len(by_swap)) + 1)
    )


def marks(comparison: PreemptionComparison) -> dict[int, str]:
    """By step: what happened in it, and in which way where the two are not alike."""
    one, other = happened(comparison.recompute), happened(comparison.swap)
    return {
        step: one[step] if one.get(step) == other.get(step) else _both(one.get(step, ""), other.get(step, ""))
        for step in sorted({*one, *other})
    }


def _both(by_recompute: str, by_swap: str) -> str:
    return "; ".join(words for words in (by_recompute, by_swap) if words)


def replies(preempted: Preempted) -> str:
    """Every reply of the run with recomputing, and how the run with swapping compares."""
    from engine.inspect.scratch import first_difference

    display, drawn = preempted.model.weights.tokenizer.display, []
    for one, other in zip(preempted.comparison.recompute.replies, preempted.comparison.swap.replies, strict=True):
        drawn.append(
            reply_card(
                _("{seq_id}, recompute").format(seq_id=one.seq_id), f"recompute-{one.seq_id}", one, None, None, display
            )
        )
        difference = first_difference(one.token_ids, other.token_ids)
        drawn.append(
            reply_card(
                _("{seq_id}, swap").format(seq_id=one.seq_id), f"swap-{one.seq_id}", other, one, difference, display
            )
        )
    return reply_cards(drawn)
