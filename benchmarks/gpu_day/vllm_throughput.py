"""Tokens a second beside vLLM, where it is installed: it takes a minute to start, so this part comes last."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib.util import find_spec

from benchmarks.gpu_day.context import Context
from benchmarks.gpu_day.findings import Finding, NotHereError
from benchmarks.gpu_day.models import obstacle_to_embedded
from benchmarks.gpu_day.throughput import beside


def run(context: Context) -> Iterator[Finding]:
    for name in ("vllm", "transformers"):  # the latter writes the checkpoint that vLLM reads
        if find_spec(name) is None:
            raise NotHereError(f"{name} is not installed")
    if obstacle := obstacle_to_embedded():
        raise NotHereError(f"vLLM would load the embedded weights, and {obstacle}")
    from benchmarks.contestants import Limits, Peer

    most = max(batch for batch, _ in context.sizes.throughput)
    longest = max(prompt for _, prompt in context.sizes.throughput) + context.sizes.new_tokens
    peer = Peer("vllm", sys.executable, Limits(most, longest))
    try:
        yield from beside(context, peer, "vllm")
    finally:
        peer.close()
