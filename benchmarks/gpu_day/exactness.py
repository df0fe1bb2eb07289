"""Greedy text in two bytes a number by the chosen backend, against float32 by the reference on the same device.

Where they first differ, the float32 logits of both tokens tell why: a gap of a rounding is a tie that fell the other
way, a wide one is a fault.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from torch import Tensor

from benchmarks.gpu_day.context import Context
from benchmarks.gpu_day.findings import Finding, Measured, Remark
from engine import Engine, EngineConfig, SamplingParams
from engine.components import build_components
from engine.model.weights.load import LoadedModel, load_model

PROMPTS = (
    "The capital of France is", "Once upon a time, a small brave robot", "def fibonacci(n):", "Water boils when",
    "The three primary colours are", "My favourite fruit is", "In 1969 the first", "To bake bread you need",
)  # fmt: skip
BLOCK_SIZE = 16


@dataclass(frozen=True)
class _Tokens:
    token_ids: list[int]


@dataclass(frozen=True)
class _WholeText:
    """A sequence that the runner computes in one step."""

    sequence: _Tokens
    num_new_tokens: int
    block_table: list[int]
    start: int = 0
    needs_logits: bool = True


def run(context: Context) -> Iterator[Finding]:
    name, half = context.text_model(), context.half
    exact = _engine(context, load_model(name, dtype="float32", device=context.device), "reference")
    quick = _engine(context, load_model(name, dtype=half, device=context.device), "auto")
    params = SamplingParams(max_tokens=context.sizes.new_tokens, ignore_eos=True)
    expected, written = (
        [list(output.outputs[0].token_ids) for output in engine.generate(PROMPTS, params)] for engine in (exact, quick)
    )
    gaps = []
    for prompt, right, ours in zip(PROMPTS, expected, written, strict=True):
        at = first_difference(right, ours)
        if at is None:
            continue
        logits = next_logits(exact, [*exact.tokenizer.encode(prompt), *right[:at]])
        gaps.append(float(logits[right[at]] - logits[ours[at]]))
        two = logits.topk(2).values.tolist()
        yield Measured({
            "prompt": prompt, "first difference at token": at, "float32 logit gap": gaps[-1],
            "gap to the second best": two[0] - two[1], "best logit": two[0],
        })  # fmt: skip
    yield Measured({
        "model": name, "dtype": half, "backend": quick.components.info["backend"], "tokens each": params.max_tokens,
        "equal texts": f"{len(PROMPTS) - len(gaps)} of {len(PROMPTS)}", "widest gap": max(gaps, default=0.0),
    })  # fmt: skip
    yield Remark("bfloat16 has 8 bits: near 20 its steps are 0.125. Judge gaps by that.")


def first_difference(a: list[int], b: list[int]) -> int | None:
    return next((i for i, (x, y) in enumerate(zip(a, b, strict=True)) if x != y), None)


def next_logits(engine: Engine, token_ids: list[int]) -> Tensor:
    """[vocab_size] after these tokens, computed in one step over blocks that nobody holds."""
    blocks = list(range(-(-len(token_ids) // BLOCK_SIZE)))
    return engine.components.runner.run([_WholeText(_Tokens(token_ids), len(token_ids), blocks)])[0]  # type: ignore[list-item]


def _engine(context: Context, loaded: LoadedModel, backend: str) -> Engine:
    length = max(map(len, PROMPTS)) + context.sizes.new_tokens + 1
    config = EngineConfig(
        attention_backend=backend, block_size=BLOCK_SIZE, num_blocks=len(PROMPTS) * -(-length // BLOCK_SIZE),
        max_num_seqs=len(PROMPTS), max_num_batched_tokens=len(PROMPTS) * length, max_model_len=length,
        device=context.device.type, enforce_eager=backend == "reference",
    )  # fmt: skip
    return Engine(config, build_components(config, loaded))
