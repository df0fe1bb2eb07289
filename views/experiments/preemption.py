"""Experiment "Preemption, live": requests in a pool too small for them, recompute against swap."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pandas as pd

from engine.config import EngineConfig
from engine.events import RequestPreempted, StepCompleted
from engine.sampling_params import SamplingParams
from engine.scenes.scene import Scene
from engine.state import CacheState
from engine.usage import usage_of
from views.experiments.controls import LONGEST_PROMPT, prompts_of
from views.experiments.replies import reply_beside, reply_list
from views.lesson_picture import Picture, Telling, picture
from views.server import ReadyModel
from views.told import Facts, Figure
from views.url_values import NumberRule, TextRule

if TYPE_CHECKING:
    from engine.lab.preemption_race import PreemptionLane, PreemptionRace

KEY, STEP = "preemption", "step"
MOST_PROMPTS = 4
PROMPTS = TextRule("prompts", "Prompts, one a line", MOST_PROMPTS * LONGEST_PROMPT)
DEFAULT_PROMPTS = "The capital of France is\nOnce upon a time, a small robot\nThree primary colours are"
POOL = NumberRule("num_blocks", "Blocks in the pool", 2, 96, 21)
BLOCK_SIZE = NumberRule("block_size", "Block size", 1, 16, 4)
MAX_TOKENS = NumberRule("max_tokens", "New tokens each", 4, 48, 24)

RECOMPUTE, SWAP = "Recompute", "Swap"
COST, STEPS, TIME = "What it cost", "Steps", "Step"
NOBODY = "**Nobody was preempted.** All requests fit in {num_blocks:block} to the end. Make the pool smaller."
SOMEBODY = (
    "**Recompute** threw blocks away and computed {recompute.num_recomputed_tokens:token} a second time. "
    "All its steps took {recompute.elapsed_ms:.0f} ms.",
    "**Swap** copied {swap.num_swapped_out:block} out and {swap.num_swapped_in} back. "
    "All its steps took {swap.elapsed_ms:.0f} ms.",
    "Times were measured in this run, on this machine. They change from run to run, and with the model: a large one "
    "computes longer, a slow bus copies longer.",
)
SAME = "**Both ways end in the same words.** The one who was preempted goes on as if nothing had been."
OTHER = (
    "**The replies part**, where marked below. Recomputing runs many tokens in one step and adds in another order, so "
    "where two tokens score almost the same, rounding in {dtype} can decide otherwise."
)
TELLING = Telling(
    label="step {value}",
    figures=(
        Figure("Blocks used", "{usage.num_used_blocks}"),
        Figure("Blocks free", "{usage.num_free_blocks}"),
        Figure("Preempted so far", "{counters.num_preemptions}"),
        Figure("Tokens computed again", "{counters.num_recomputed_tokens}"),
    ),
    more=lambda state: {"counters": state.counters, "usage": usage_of(state)},
)


@dataclass(frozen=True)
class Inputs:
    """What decides the result. `attempt`: times are measured anew when it grows."""

    model: str
    text: str
    num_blocks: int
    block_size: int
    max_tokens: int
    attempt: int


@dataclass(frozen=True)
class Preempted:
    """Both runs with their pictures. Value k of both: memory after step k."""

    race: PreemptionRace
    recompute: Picture
    swap: Picture
    num_blocks: int
    largest_that_preempts: int | None
    model: ReadyModel

    @property
    def is_anybody_preempted(self) -> bool:
        return self.race.recompute.num_preemptions > 0

    @property
    def first_preemption(self) -> int:
        """Its step, or the last step when there is none."""
        trace = self.race.recompute.trace
        return next((event.step for event in trace if isinstance(event, RequestPreempted)), trace.num_steps)

    def facts(self) -> Facts:
        return {
            "recompute": self.race.recompute,
            "swap": self.race.swap,
            "num_blocks": self.num_blocks,
            "dtype": self.model.weights.dtype,
        }

    def verdict(self) -> tuple[str, ...]:
        """Templates over `facts`."""
        same = SAME if self.race.are_replies_equal else OTHER
        return (*SOMEBODY, same) if self.is_anybody_preempted else (NOBODY,)


def preempt(model: ReadyModel, inputs: Inputs) -> Preempted:
    """Raises ValueError with a sentence when a prompt cannot run alone in this pool."""
    from engine.lab.preemption_race import blocks_that_preempt, preemption_race  # torch comes with it
    from engine.lab.scratch import parts_maker

    prompts = prompts_of(inputs.text, MOST_PROMPTS)
    lengths = [len(model.weights.tokenizer.encode(prompt)) for prompt in prompts]
    config = EngineConfig(
        model=inputs.model,
        block_size=inputs.block_size,
        num_blocks=inputs.num_blocks,
        max_model_len=max(lengths) + inputs.max_tokens,
        max_num_batched_tokens=max(sum(lengths) + len(lengths) * inputs.max_tokens, 8),
    )
    params = SamplingParams(max_tokens=inputs.max_tokens, ignore_eos=True)
    race = preemption_race(parts_maker(model.weights), config, prompts, params)
    return Preempted(
        race,
        _picture(race.recompute, "Recompute: blocks are given back and computed again"),
        _picture(race.swap, "Swap: blocks are copied out and in"),
        inputs.num_blocks,
        blocks_that_preempt(config, lengths, inputs.max_tokens),
        model,
    )


def _picture(lane: PreemptionLane, title: str) -> Picture:
    steps = {step: step for step in range(lane.num_steps + 1)}
    return picture(Scene(lane.trace, steps, "steps"), replace(TELLING, focus=_preempted_first), title)


def _preempted_first(state: CacheState) -> str | None:
    """The sequence worth looking at: of a request that was put aside."""
    aside = [request for request in state.requests.values() if request.status in ("preempted", "swapped")]
    return aside[0].seq_ids[0] if aside else None


def costs_frame(race: PreemptionRace) -> pd.DataFrame:
    """One row a cost, a column a way."""
    rows = [
        (name, getattr(race.recompute, field), getattr(race.swap, field))
        for name, field in (
            ("Times somebody was preempted", "num_preemptions"),
            ("Tokens computed a second time", "num_recomputed_tokens"),
            ("Blocks copied out", "num_swapped_out"),
            ("Blocks copied back", "num_swapped_in"),
            ("Steps until all were done", "num_steps"),
        )
    ]
    rows.append(
        (
            "Time of all steps, ms, measured in this run",
            f"{race.recompute.elapsed_ms:.0f}",
            f"{race.swap.elapsed_ms:.0f}",
        )
    )
    return pd.DataFrame(rows, columns=[COST, RECOMPUTE, SWAP])


def times_frame(race: PreemptionRace) -> pd.DataFrame:
    """One row a step: how long it took either way, in ms. Blank where a way was done before."""
    times = {
        name: {event.step: round(event.elapsed_ms, 1) for event in lane.trace if isinstance(event, StepCompleted)}
        for name, lane in ((RECOMPUTE, race.recompute), (SWAP, race.swap))
    }
    last = max(race.recompute.num_steps, race.swap.num_steps)
    return pd.DataFrame({TIME: s, **{name: lane.get(s) for name, lane in times.items()}} for s in range(1, last + 1))


def replies(preempted: Preempted) -> str:
    """Every reply of the run with recomputing, and how the run with swapping compares."""
    from engine.lab.scratch import first_difference

    display, drawn = preempted.model.weights.tokenizer.display, []
    for one, other in zip(preempted.race.recompute.replies, preempted.race.swap.replies, strict=True):
        drawn.append(reply_beside(f"{one.seq_id}, recompute", f"recompute-{one.seq_id}", one, None, None, display))
        difference = first_difference(one.token_ids, other.token_ids)
        drawn.append(reply_beside(f"{one.seq_id}, swap", f"swap-{one.seq_id}", other, one, difference, display))
    return reply_list(drawn)
