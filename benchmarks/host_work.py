"""What a decode step costs the host beside the model: schedule, prepare, commit, texts and events.

Usage: python -m benchmarks.host_work [--json] [--batch 1 16 64] [--context 100] [--steps 100] [--rounds 5]

The model and the sampler are replaced: a runner that only makes the batch's tensors, as the real one does, and a
sampler that gives the same token to everybody. All else is the engine's own, with the embedded model's tokenizer.

A figure is the processor time of the thread that steps, in milliseconds a step: other work on the machine makes it
wait, but count more only through what they share (caches, a core's two threads). `median` is that of all steps,
`fastest` the shortest one, and `10 %` and `90 %` say how far the steps lie apart. `prepare` is the part that makes the
tensors, by a stopwatch in a round of its own. The verdict is on the median.
"""

from __future__ import annotations

import argparse
import random
import statistics
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from benchmarks.stopwatch import Stopwatch
from benchmarks.tables import Row, progress, show
from engine import Engine, EngineConfig, SamplingParams
from engine.batch import BatchInputs
from engine.components import EngineComponents
from engine.model.tokenizer import Tokenizer
from engine.model.weights.load import load_model
from engine.sampler import SampledToken, SampleRequest
from engine.scheduler import ScheduledSequence

BLOCK_SIZE = 16
TARGETS = {1: 0.05, 16: 0.25, 64: 0.8}
"""Milliseconds a step at most, by batch."""
WARM_UP = 10


class NullRunner:
    """Makes the tensors and computes nothing."""

    def __init__(self, block_size: int) -> None:
        self.inputs = BatchInputs(block_size)

    def run(self, items: Sequence[ScheduledSequence]) -> Tensor:
        """[num_logit_rows, 0]."""
        return torch.empty(len(self.inputs.prepare(items).logits_indices), 0)


@dataclass(frozen=True)
class OneToken:
    """A sampler for which every next token is the same."""

    token_id: int

    def sample(self, logits: Tensor, requests: Sequence[SampleRequest]) -> list[SampledToken]:
        """`logits` [num_logit_rows, 0]."""
        return [SampledToken(self.token_id, -1.0) for _ in requests]


def main() -> None:
    options = parse_options()
    loaded = load_model(options.model, device=torch.device("cpu"))
    rows: list[Row] = []
    for batch in options.batch:
        progress(f"batch {batch}")
        rows.append(
            measure(loaded.tokenizer, loaded.config.vocab_size, batch, options.context, options.steps, options.rounds)
        )
    show(
        rows, as_json=options.json, command=f"python -m benchmarks.host_work {' '.join(sys.argv[1:])}",
        notes=["milliseconds of the thread's processor time"],
    )  # fmt: skip


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--batch", nargs="+", type=int, default=[1, 16, 64])
    parser.add_argument("--context", type=int, default=100)
    parser.add_argument("--model", default="smollm2-135m-instruct")
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=5)
    return parser.parse_args()


def measure(tokenizer: Tokenizer, vocab_size: int, batch: int, context: int, steps: int, rounds: int) -> Row:
    """One row."""
    num_tokens = steps + WARM_UP + 2
    seconds = [seconds_of_steps(null_engine(tokenizer, vocab_size, batch, context, num_tokens)) for _ in range(rounds)]
    together = sorted(1e3 * second for of_round in seconds for second in of_round)
    deciles = statistics.quantiles(together, n=10)
    median = statistics.median(together)
    row: Row = {
        "batch": batch,
        "context": context,
        "median ms": round(median, 4),
        "10 % ms": round(deciles[0], 4),
        "90 % ms": round(deciles[-1], 4),
        "fastest ms": round(together[0], 4),
        "prepare ms": round(prepare_ms(null_engine(tokenizer, vocab_size, batch, context, num_tokens)), 4),
    }
    if batch in TARGETS:
        row |= {"target ms": TARGETS[batch], "verdict": "met" if median <= TARGETS[batch] else "missed"}
    return row


def null_engine(tokenizer: Tokenizer, vocab_size: int, batch: int, context: int, num_tokens: int) -> Engine:
    """`batch` sequences that know `context` tokens and their first own one, with room for `num_tokens`."""
    length = context + num_tokens
    config = EngineConfig(
        block_size=BLOCK_SIZE,
        num_blocks=batch * -(-length // BLOCK_SIZE),
        max_num_seqs=batch,
        max_num_batched_tokens=batch * context,
        max_model_len=length,
    )
    components = EngineComponents(tokenizer, NullRunner(BLOCK_SIZE), OneToken(1000), None, vocab_size, {})
    engine = Engine(config, components)
    tokens = random.Random(0)
    for _ in range(batch):
        prompt = [tokens.randrange(1000, vocab_size) for _ in range(context)]
        engine.add_request(prompt, SamplingParams(max_tokens=num_tokens, ignore_eos=True))
    engine.step()
    return engine


def seconds_of_steps(engine: Engine) -> list[float]:
    """The thread's processor time of every step to come, after those that warm up and but for the last one."""
    for _ in range(WARM_UP):
        engine.step()
    seconds: list[float] = []
    while True:
        started = time.thread_time()
        engine.step()
        taken = time.thread_time() - started
        if not engine.has_unfinished_requests():
            return seconds
        seconds.append(taken)


def prepare_ms(engine: Engine) -> float:
    """Milliseconds a step that go into the batch's tensors."""
    runner = engine.components.runner
    assert isinstance(runner, NullRunner)
    watch = Stopwatch(time.thread_time)
    runner.inputs.prepare = watch.timed("prepare", runner.inputs.prepare)  # type: ignore[method-assign]
    num_steps = WARM_UP + len(seconds_of_steps(engine)) + 1
    return 1e3 * watch.seconds["prepare"] / num_steps


if __name__ == "__main__":
    main()
