"""Beam searches of a real model: which beams go on, and so what they share, depends on what the model finds likely."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import cycle, islice
from pathlib import Path

from course.paper.serving import PAPER_BLOCK_SIZE
from course.paper.workloads import MAX_MODEL_LEN, Request
from engine.config import EngineConfig
from engine.engine import Engine
from engine.sampling_params import SamplingParams

TEXT = Path(__file__).resolve().parents[2] / "docs" / "instructors.md"
"""English prose of this repository."""


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

    def steps(self) -> Iterator[None]:
        """Run until nothing is left, and come back after every step."""
        while self.engine.has_unfinished_requests():
            self.engine.step()
            self.engine.trace.drain()
            yield
