"""The parts of the GPU day, in the order of their worth: what runs first is known even if the card is taken away."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Part:
    """One module with `run(context)`, which yields findings (benchmarks/gpu_day/context.py)."""

    name: str
    needs: float
    """Seconds. It is not started with less than that left."""
    share: float = 0.2
    """Of all the seconds: when so many have passed, it is stopped."""
    package: str = "benchmarks.gpu_day"

    @property
    def module(self) -> str:
        return f"{self.package}.{self.name}"


PARTS = (
    Part("versions", needs=1),
    Part("self_test", needs=5),
    Part("gpu_tests", needs=30, share=0.4),
    Part("graphs", needs=8),
    Part("recorded_run", needs=3),
    Part("decode_attention", needs=8),
    Part("prefill_attention", needs=8),
    Part("tiles", needs=10),
    Part("decode_batches", needs=10),
    Part("exactness", needs=8),
    Part("throughput", needs=15),
    Part("memory", needs=4),
    Part("two_threads", needs=4),
    Part("vllm_throughput", needs=60, share=1.0),
)
