"""The equation is unchanged: the same prompts through contiguous and through paged keys and values, side by side.

Both sides compute softmax(q K^T / sqrt(d)) V with the same weights. They add in another order, so logits differ by
rounding; TOLERANCE says by how much at most, for each number type that the model runs in. The paged side is batch
invariant where the device can be: what it computes for a prompt does not depend on the prompts beside it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from course.equation.dense import dense_logits
from engine.baselines.arrivals import Arrival
from engine.baselines.fragmentation import waste
from engine.baselines.reservations import Max
from engine.baselines.scheduler import replay
from engine.components import Runner, build_components, can_be_batch_invariant
from engine.config import EngineConfig
from engine.engine import Engine, Prompt
from engine.inspect.scratch import first_difference, run_to_end
from engine.model.weights.load import LoadedModel
from engine.sampling_params import SamplingParams
from engine.scheduler import ScheduledSequence
from engine.trace.trace import Trace, peak
from engine.trace.usage import usage_of

TOLERANCE = {"float32": 1e-3, "float16": 0.35, "bfloat16": 2.5, "int4": 4.0}
"""Largest difference of two logits that rounding explains: at least twice what SmolLM2 showed in 30 prompts of many
kinds with 16 tokens each (8.2e-5 in float32, 1.22 in bfloat16, 1.98 in int4 with activations of eight bits, where a
small difference moves an activation to the next step); float16 follows from its three more bits than bfloat16."""


@dataclass(frozen=True, slots=True)
class ComparedPrompt:
    """One prompt on both sides. Each contiguous token is the best one after the same tokens before it.

    `logit_differences[i]`: the largest difference of any logit when token i of the reply was chosen.
    """

    request_id: str
    prompt_token_ids: tuple[int, ...]
    paged_token_ids: tuple[int, ...]
    contiguous_token_ids: tuple[int, ...]
    text: str
    logit_differences: tuple[float, ...]

    @property
    def first_difference(self) -> int | None:
        """The index of the first token that differs, None when none does."""
        return first_difference(self.paged_token_ids, self.contiguous_token_ids)


@dataclass(frozen=True, slots=True)
class EquationReport:
    """`paged_bytes`, `contiguous_bytes`: keys and values set aside at the fullest moment, counted from the traces.

    The contiguous side reserves `max_model_len` slots a request, as systems did before paging (the paper's Max).
    """

    prompts: tuple[ComparedPrompt, ...]
    backend: str
    backend_reason: str
    dtype: str
    tolerance: float
    paged_bytes: int
    contiguous_bytes: int
    paged_trace: Trace
    contiguous_trace: Trace

    @property
    def num_tokens(self) -> int:
        """Tokens of all replies."""
        return sum(len(prompt.paged_token_ids) for prompt in self.prompts)

    @property
    def largest_logit_difference(self) -> float:
        """Over all prompts and tokens."""
        return max((d for prompt in self.prompts for d in prompt.logit_differences), default=0.0)

    @property
    def are_tokens_equal(self) -> bool:
        """Whether both sides generated the same tokens for every prompt."""
        return all(prompt.first_difference is None for prompt in self.prompts)

    @property
    def is_within_tolerance(self) -> bool:
        """Whether no logit differs by more than `tolerance`."""
        return self.largest_logit_difference <= self.tolerance


class RecordingRunner:
    """Passes everything on, and keeps the logits of each sequence, in the order of its tokens."""

    def __init__(self, runner: Runner) -> None:
        self._runner = runner
        self.rows: dict[str, list[Tensor]] = {}

    def run(self, items: Sequence[ScheduledSequence]) -> Tensor:
        """The wrapped runner's logits [num_logit_rows, vocab_size]."""
        logits = self._runner.run(items)
        for item, row in zip([item for item in items if item.needs_logits], logits, strict=True):
            self.rows.setdefault(item.sequence.seq_id, []).append(row.clone())
        return logits


def equation(loaded: LoadedModel, config: EngineConfig, prompts: Sequence[Prompt], max_tokens: int) -> EquationReport:
    """Greedy replies of at most `max_tokens` tokens. Raises RequestRefusedError for a prompt that cannot run."""
    config = replace(config, batch_invariant=can_be_batch_invariant(config))
    components = build_components(config, loaded)
    recorder = RecordingRunner(components.runner)
    engine = Engine(config, replace(components, runner=recorder))
    names = [engine.add_request(prompt, SamplingParams(max_tokens=max_tokens)) for prompt in prompts]
    run_to_end(engine)
    compared = tuple(_compare(loaded, engine, name, recorder.rows[name]) for name in names)
    contiguous_trace = _contiguous_trace(engine, compared)
    bytes_per_token = int(engine.trace.info["kv_bytes_per_token"])
    return EquationReport(
        prompts=compared,
        backend=engine.backend,
        backend_reason=engine.backend_reason,
        dtype=loaded.dtype,
        tolerance=TOLERANCE[loaded.dtype],
        paged_bytes=bytes_per_token * peak(engine.trace, lambda state: usage_of(state).num_held_slots),
        contiguous_bytes=bytes_per_token * peak(contiguous_trace, lambda state: waste(state).num_held),
        paged_trace=engine.trace,
        contiguous_trace=contiguous_trace,
    )


def _compare(loaded: LoadedModel, engine: Engine, name: str, paged_rows: list[Tensor]) -> ComparedPrompt:
    output = engine.output(name)
    prompt, reply = output.prompt_token_ids, output.outputs[0]
    dense = dense_logits(loaded.model, prompt + reply.token_ids, len(prompt), engine.config.max_model_len)
    paged = torch.stack(paged_rows)
    return ComparedPrompt(
        request_id=name,
        prompt_token_ids=prompt,
        paged_token_ids=reply.token_ids,
        contiguous_token_ids=tuple(dense.argmax(dim=-1).tolist()),
        text=reply.text,
        logit_differences=tuple((paged - dense).abs().amax(dim=-1).tolist()),
    )


def _contiguous_trace(engine: Engine, compared: Sequence[ComparedPrompt]) -> Trace:
    """The same requests in contiguous reservations, with room for all of them."""
    limit = engine.config.max_model_len
    arrivals = [_arrival(engine, prompt) for prompt in compared]
    return replay(arrivals, num_slots=limit * len(arrivals), rule=Max(limit), allocator="first_fit")


def _arrival(engine: Engine, prompt: ComparedPrompt) -> Arrival:
    display = engine.tokenizer.display
    return Arrival(
        prompt.request_id,
        1,
        prompt.prompt_token_ids,
        tuple(map(display, prompt.prompt_token_ids)),
        prompt.contiguous_token_ids,
        tuple(map(display, prompt.contiguous_token_ids)),
    )
