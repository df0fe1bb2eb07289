"""The whole engine as a memory: where the log must be complete, or where samples and beams fork."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import cycle, islice
from pathlib import Path

from torch import Tensor

from course.paper.serving import PAPER_BLOCK_SIZE, Step, config_without_limits, finished_in
from course.paper.workloads import MAX_MODEL_LEN, Request
from course.scripted_engine import WordTokenizer
from engine.components import EngineComponents
from engine.config import EngineConfig
from engine.engine import Engine
from engine.runner import NoModel
from engine.sampler import SampledToken, SampleRequest
from engine.sampling_params import SamplingParams
from engine.trace.events import Event

VOCAB_SIZE = 1 << 31
TEXT = Path(__file__).resolve().parents[2] / "docs" / "instructors.md"
"""English prose of this repository."""


class EngineMemory:
    """The engine without a model. `n` samples of a request differ in every token."""

    def __init__(self, num_slots: int, block_size: int = PAPER_BLOCK_SIZE, n: int = 1) -> None:
        config = config_without_limits(num_slots, block_size)
        components = EngineComponents(
            tokenizer=WordTokenizer(),
            runner=NoModel(),
            sampler=_OwnTokens(),
            store=None,
            vocab_size=VOCAB_SIZE,
            info={"source": "engine, replayed lengths", "model": "none"},
        )
        self.engine = Engine(config, components)
        self._n = n

    def add(self, request: Request) -> None:
        """See Memory."""
        params = SamplingParams(max_tokens=request.num_output_tokens, n=self._n, ignore_eos=True)
        self.engine.add_request([0] * request.num_prompt_tokens, params, str(request.number))

    def step(self) -> Step:
        """See Memory."""
        return self.step_with_events()[0]

    def step_with_events(self) -> tuple[Step, list[Event]]:
        """A step, and the log since the one before."""
        self.engine.step()
        events = self.engine.trace.drain()
        finished = finished_in(events)
        for number in finished:
            self.engine.forget_request(str(number))
        return Step.of(events, finished), events

    @property
    def num_waiting(self) -> int:
        """See Memory."""
        return len(self.engine.scheduler.waiting)

    @property
    def num_running(self) -> int:
        """See Memory."""
        return len(self.engine.scheduler.running)

    def percent_saved_to_the_end(self) -> float:
        """Run until nothing is left. Blocks saved by sharing over those without it, all steps together, in percent."""
        return _percent_saved(self.engine)


class BeamSearches:
    """Beam searches of a real model, all of them at once. Prompts are pieces of one English text."""

    def __init__(self, model: str, beam_width: int, requests: Sequence[Request]) -> None:
        longest = [-(-(each.num_prompt_tokens + each.num_output_tokens) // PAPER_BLOCK_SIZE) for each in requests]
        num_seqs = beam_width * len(requests)
        self.engine = Engine(
            EngineConfig(
                model=model, block_size=PAPER_BLOCK_SIZE, num_blocks=beam_width * (sum(longest) + 1),
                max_num_seqs=num_seqs, max_num_batched_tokens=max(num_seqs, MAX_MODEL_LEN),
                max_model_len=MAX_MODEL_LEN, enable_prefix_caching=False,
            )
        )  # fmt: skip
        text = self.engine.tokenizer.encode(TEXT.read_text("utf-8"))
        for each in requests:
            start = each.number * len(text) // len(requests)
            prompt = list(islice(cycle(text), start, start + each.num_prompt_tokens))
            params = SamplingParams(
                max_tokens=each.num_output_tokens, beam_width=beam_width, n=beam_width, ignore_eos=True
            )
            self.engine.add_request(prompt, params, str(each.number))

    def percent_saved_to_the_end(self) -> float:
        """Run until nothing is left. Blocks saved by sharing over those without it, all steps together, in percent."""
        return _percent_saved(self.engine)


def _percent_saved(engine: Engine) -> float:
    without_sharing = held = 0
    while engine.has_unfinished_requests():
        engine.step()
        engine.trace.drain()
        without_sharing += sum(map(len, engine.kv.block_tables.values()))
        held += engine.kv.pool.num_blocks - engine.kv.pool.num_free_blocks
    return 100 * (without_sharing - held) / without_sharing


class _OwnTokens:
    """A sampler whose token is the number of the sample."""

    def sample(self, logits: Tensor, requests: Sequence[SampleRequest]) -> list[SampledToken]:
        return [SampledToken(request.sequence.index, 0.0) for request in requests]
