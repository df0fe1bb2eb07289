"""The whole engine as a memory, where the log must be complete: a fold of it says what each slot holds."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from course.paper.serving import NEXT_TOKEN, PAPER_BLOCK_SIZE, Step, config_without_limits
from course.paper.workloads import Request
from course.scripted_engine import WordTokenizer
from engine.components import EngineComponents
from engine.engine import Engine
from engine.runner import NoModel
from engine.sampler import SampledToken, SampleRequest
from engine.sampling_params import SamplingParams
from engine.trace.events import Event

VOCAB_SIZE = 1 << 31


class EngineMemory:
    """The engine without a model, with blocks as large as the paper's."""

    def __init__(self, num_slots: int) -> None:
        components = EngineComponents(
            tokenizer=WordTokenizer(),
            runner=NoModel(),
            sampler=_OneToken(),
            store=None,
            vocab_size=VOCAB_SIZE,
            info={"source": "engine, replayed lengths", "model": "none"},
        )
        self.engine = Engine(config_without_limits(num_slots, PAPER_BLOCK_SIZE), components)

    def add(self, request: Request) -> None:
        """See Memory."""
        params = SamplingParams(max_tokens=request.num_output_tokens, ignore_eos=True)
        self.engine.add_request([0] * request.num_prompt_tokens, params, str(request.number))

    def step_with_events(self) -> tuple[Step, list[Event]]:
        """A step, and the log since the one before."""
        self.engine.step()
        events = self.engine.trace.drain()
        step = Step.of(events)
        for number in step.finished:
            self.engine.forget_request(str(number))
        return step, events

    @property
    def num_waiting(self) -> int:
        """See Memory."""
        return len(self.engine.scheduler.waiting)


class _OneToken:
    """A sampler that always gives the same token."""

    def sample(self, logits: Tensor, requests: Sequence[SampleRequest]) -> list[SampledToken]:
        return [SampledToken(NEXT_TOKEN, 0.0) for _request in requests]
