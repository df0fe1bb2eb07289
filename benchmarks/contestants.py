"""Who runs in `benchmarks.throughput`: our engine, transformers' `generate`, and engines of other environments.

Each answers a job with times: times[k] is when, in seconds since the start, the slowest sequence had its token k + 1.
"""

from __future__ import annotations

import json
import subprocess
import time
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Protocol

import torch
from torch import Tensor
from transformers import LlamaForCausalLM, StoppingCriteria, StoppingCriteriaList

from benchmarks.embedded_model import gguf_file, huggingface_folder, in_transformers
from engine import Engine, EngineConfig, SamplingParams
from engine.components import build_components
from engine.model.device import TORCH_DTYPES
from engine.model.weights.embedded import EMBEDDED_MODEL
from engine.model.weights.load import LoadedModel, load_model

PEERS = Path(__file__).parent / "peers"


@dataclass(frozen=True)
class Job:
    """The same greedy work for everybody. Prompts are of one length; an end token ends nobody."""

    prompts: list[list[int]]
    num_tokens: int


@dataclass(frozen=True)
class Limits:
    """The largest job to come: what an engine needs to set its memory aside."""

    max_seqs: int
    max_len: int


class Contestant(Protocol):
    @property
    def description(self) -> str: ...

    def run(self, job: Job) -> list[float]: ...


class OurEngine:
    """A whole prompt batch in one step, as everybody else does it."""

    def __init__(self, loaded: LoadedModel, backend: str, limits: Limits, *, batch_invariant: bool = False) -> None:
        block_size = 16
        config = EngineConfig(
            dtype=loaded.dtype,
            device=loaded.model.device.type,
            attention_backend=backend,
            block_size=block_size,
            num_blocks=limits.max_seqs * -(-limits.max_len // block_size),
            max_num_seqs=limits.max_seqs,
            max_num_batched_tokens=limits.max_seqs * limits.max_len,
            max_model_len=limits.max_len,
            batch_invariant=batch_invariant,
        )
        self.engine = Engine(config, build_components(config, loaded))
        self.description = f"this engine, {backend}, {loaded.dtype}"

    def run(self, job: Job) -> list[float]:
        params = SamplingParams(max_tokens=job.num_tokens, ignore_eos=True)
        times: list[float] = []
        started = time.perf_counter()
        for token_ids in job.prompts:
            self.engine.add_request(token_ids, params)
        while self.engine.has_unfinished_requests():
            self.engine.step()
            times.append(time.perf_counter() - started)
        assert len(times) == job.num_tokens, "prompts did not start together"
        return times


class TransformersGenerate:
    def __init__(self, model: LlamaForCausalLM) -> None:
        self.model = model
        self.description = f"transformers generate, {str(model.dtype).removeprefix('torch.')}"

    def run(self, job: Job) -> list[float]:
        clock = _Clock()
        ids = torch.tensor(job.prompts, device=self.model.device)
        self.model.generate(
            ids,
            attention_mask=torch.ones_like(ids),
            do_sample=False,
            min_new_tokens=job.num_tokens,
            max_new_tokens=job.num_tokens,
            pad_token_id=0,
            stopping_criteria=StoppingCriteriaList([clock]),
        )
        return clock.times


class _Clock(StoppingCriteria):  # type: ignore[misc]
    """Asked after every token whether to stop; never does."""

    def __init__(self) -> None:
        self.times: list[float] = []
        self.started = time.perf_counter()

    def __call__(self, input_ids: Tensor, scores: Tensor, **_: object) -> Tensor:
        if input_ids.is_cuda:
            torch.cuda.synchronize()
        self.times.append(time.perf_counter() - self.started)
        return torch.zeros(len(input_ids), dtype=torch.bool, device=input_ids.device)


class Peer:
    """An engine under another environment's interpreter, spoken to in lines of JSON (benchmarks/peers/peer_loop.py)."""

    def __init__(self, name: str, python: str, limits: Limits) -> None:
        """Raises RuntimeError when it does not come up."""
        model = {"vllm": huggingface_folder, "llamacpp": gguf_file}[name]()
        arguments = [str(model), str(torch.get_num_threads()), str(limits.max_seqs), str(limits.max_len)]
        self.process = subprocess.Popen(
            [python, str(PEERS / f"{name}_peer.py"), *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self.description = str(self._read()["engine"])

    def run(self, job: Job) -> list[float]:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps({"prompts": job.prompts, "num_tokens": job.num_tokens}) + "\n")
        self.process.stdin.flush()
        return list(self._read()["times"])

    def close(self) -> None:
        """The peer ends when its input does."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait(timeout=60)

    def _read(self) -> dict[str, list[float]]:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"a peer ended with code {self.process.wait()}; run it by hand to read why: {PEERS}")
        answer: dict[str, list[float]] = json.loads(line)
        return answer


@cache
def embedded(dtype: str, device: str) -> LoadedModel:
    """The embedded model in this engine."""
    return load_model(EMBEDDED_MODEL, dtype=dtype, device=torch.device(device))


@cache
def embedded_in_transformers(dtype: str, device: str) -> LlamaForCausalLM:
    """The embedded model in transformers."""
    model = in_transformers()
    if dtype == "float32" and device == "cpu":
        return model
    from copy import deepcopy

    return deepcopy(model).to(device=torch.device(device), dtype=TORCH_DTYPES[dtype])
