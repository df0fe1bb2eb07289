"""Two engines in two threads at once write what each writes alone, though recording and replay are the process's."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

from benchmarks.gpu_day.context import Context
from benchmarks.gpu_day.findings import Finding, Measured
from engine import Engine, EngineConfig, SamplingParams
from engine.components import build_components
from engine.model.weights.load import LoadedModel, load_model

PROMPTS = (("The red fox", "A long time ago"), ("Water boils when", "My favourite fruit is"))
TOGETHER_SECONDS = 60.0


def run(context: Context) -> Iterator[Finding]:
    """Raises AssertionError when a text differs."""
    loaded = load_model(context.text_model(), dtype="float32", device=context.device)
    alone = [_texts(context, loaded, prompts) for prompts in PROMPTS]
    both_ready = Barrier(len(PROMPTS))

    def at_once(prompts: tuple[str, ...]) -> list[tuple[int, ...]]:
        both_ready.wait(TOGETHER_SECONDS)
        return _texts(context, loaded, prompts)

    with ThreadPoolExecutor(len(PROMPTS)) as threads:
        together = list(threads.map(at_once, PROMPTS))
    equal = sum(a == b for ours, others in zip(alone, together, strict=True) for a, b in zip(ours, others, strict=True))
    asked = sum(map(len, PROMPTS))
    yield Measured({"model": loaded.name, "threads": len(PROMPTS), "texts as alone": f"{equal} of {asked}"})
    if equal < asked:
        raise AssertionError(f"{asked - equal} of {asked} texts differ from those of an engine that runs alone")


def _texts(context: Context, loaded: LoadedModel, prompts: tuple[str, ...]) -> list[tuple[int, ...]]:
    """Token ids of an engine that is made here and runs long enough to record its steps."""
    config = EngineConfig(num_blocks=64, max_num_seqs=2, max_model_len=128, device=context.device.type)
    engine = Engine(config, build_components(config, loaded))
    params = SamplingParams(max_tokens=context.sizes.new_tokens, ignore_eos=True)
    return [output.outputs[0].token_ids for output in engine.generate(prompts, params)]
