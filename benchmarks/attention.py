"""Paged attention against the ways to do without: how long one layer takes, and what paging costs.

Usage: python -m benchmarks.attention [--json] [--phase decode prefill] [--batch 1 16] [--context 200 1000]
           [--block-size 1 4 16 64 256] [--dtype float32 bfloat16] [--heads 9 3] [--head-dim 64] [--rounds 7] [--flex]

All contestants take turns within each round, over as many layers' caches as outgrow the processor's own, as in a
real step (two layers in prefill, whose arithmetic outweighs its reading); a figure is the median of the rounds, in
milliseconds a layer. `paged:contiguous` compares the default backend with PyTorch's attention over contiguous tensors;
`of copy bandwidth` is what it reads a second, over what a plain copy moves. PyTorch's
flex_attention joins on a GPU, and with `--flex` on a CPU too, where it needs a C++ compiler and minutes.
"""

import argparse
import math
import statistics
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import product

import torch
from torch import Tensor

from benchmarks.attention_rivals import contiguous_sdpa, flex_sdpa, gather_then_sdpa
from benchmarks.bandwidth import copy_bandwidth, seconds_of, uncached_bytes
from benchmarks.tables import Row, progress, show
from kernels.backend import select_backend
from kernels.registry import BACKENDS

MOST_LAYERS = 30


@dataclass(frozen=True)
class Case:
    batch: int
    context: int
    block_size: int
    dtype: str
    phase: str
    heads: tuple[int, int]
    head_dim: int

    def num_layers(self, device: torch.device) -> int:
        if self.phase == "prefill":
            return 2
        return min(MOST_LAYERS, max(2, math.ceil(uncached_bytes(device) / self.bytes_read())))

    def bytes_read(self) -> int:
        """Keys and values of one layer."""
        dtype: torch.dtype = getattr(torch, self.dtype)
        return 2 * self.batch * self.context * self.heads[1] * self.head_dim * dtype.itemsize


Contestant = Callable[[int], object]
"""Attends on the layer of the given number."""


def main() -> None:
    options = parse_options()
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    default = select_backend("auto", device)
    bandwidth = copy_bandwidth(device)
    rows = []
    for case in cases_of(options):
        progress(f"{case.phase}, {case.batch} x {case.context}, block {case.block_size}, {case.dtype} ...")
        contestants = line_up(case, device, options.flex)
        times = race(contestants, case.num_layers(device), options.rounds, device)
        best = times[default.name]
        row: Row = {
            "phase": case.phase, "batch": case.batch, "context": case.context, "block": case.block_size,
            "dtype": case.dtype,
            **{name: round(1e3 * seconds, 4) for name, seconds in times.items()},
            "paged:contiguous": round(best / times["contiguous SDPA"], 2),
            "of copy bandwidth": round(case.bytes_read() / best / bandwidth, 2),
        }  # fmt: skip
        rows.append(row)
    show(rows, as_json=options.json, command=f"python -m benchmarks.attention {' '.join(sys.argv[1:])}")


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--phase", nargs="+", choices=("decode", "prefill"), default=["decode", "prefill"])
    parser.add_argument("--batch", nargs="+", type=int, default=[1, 16])
    parser.add_argument("--context", nargs="+", type=int, default=[200, 1000])
    parser.add_argument("--block-size", nargs="+", type=int, default=[1, 4, 16, 64, 256])
    parser.add_argument("--dtype", nargs="+", default=["float32", "bfloat16"])
    parser.add_argument("--heads", nargs=2, type=int, default=[9, 3], help="query heads, KV heads")
    parser.add_argument("--head-dim", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--flex", action="store_true", default=torch.cuda.is_available())
    return parser.parse_args()


def cases_of(options: argparse.Namespace) -> Iterator[Case]:
    for phase, dtype, block_size, batch, context in product(
        options.phase, options.dtype, options.block_size, options.batch, options.context
    ):
        yield Case(batch, context, block_size, dtype, phase, tuple(options.heads), options.head_dim)


def line_up(case: Case, device: torch.device, flex: bool, backends: Sequence[str] = ()) -> dict[str, Contestant]:
    """The contestants over the same random layers; `backends`: ours, in the place of all that run here."""
    dtype = getattr(torch, case.dtype)
    num_heads, num_kv_heads = case.heads
    width = math.ceil(case.context / case.block_size)
    shape = (case.batch * width, case.block_size, num_kv_heads, case.head_dim)

    def random_cache() -> Tensor:
        return torch.randn(shape, device=device).to(dtype)

    caches = [(random_cache(), random_cache()) for _ in range(case.num_layers(device))]
    table = torch.randperm(shape[0], device=device).view(case.batch, width).int()
    query_len = 1 if case.phase == "decode" else case.context
    query = torch.randn(case.batch * query_len, num_heads, case.head_dim, device=device).to(dtype)
    seq_lens = torch.full((case.batch,), case.context, dtype=torch.int32, device=device)
    starts = torch.arange(case.batch + 1, dtype=torch.int32, device=device) * query_len
    long_table = table.long()

    def contiguous(cache: Tensor) -> Tensor:
        in_order = cache[long_table].view(case.batch, -1, *shape[2:])[:, : case.context]
        return in_order.transpose(1, 2).contiguous()

    slabs = [(contiguous(key_cache), contiguous(value_cache)) for key_cache, value_cache in caches]

    def paged(name: str) -> Contestant:
        attention = select_backend(name, device).paged_attention
        return lambda i: attention(query, *caches[i], table, seq_lens, starts, scale=case.head_dim**-0.5)

    contestants: dict[str, Contestant] = {}
    for name in backends or backends_for(device):
        contestants[name] = paged(name)
    is_for_the_loop = (device.type, case.phase, case.dtype) == ("cpu", "decode", "float32")
    if is_for_the_loop and not backends and find_spec("numba"):
        from benchmarks.plain_loop import plain_loop

        contestants["plain Numba loop"] = lambda i: plain_loop(query, *caches[i], table, case.context)
    if flex:
        contestants["flex_attention"] = lambda i: flex_sdpa(query, *slabs[i])
    contestants["gather + SDPA"] = lambda i: gather_then_sdpa(query, *caches[i], long_table, case.context)
    contestants["contiguous SDPA"] = lambda i: contiguous_sdpa(query, *slabs[i])
    check_agreement(contestants, 2e-5 if dtype == torch.float32 else 5e-2)
    return contestants


def backends_for(device: torch.device) -> list[str]:
    """The names of those that run on `device`, and there in a CUDA graph."""
    return [
        spec.name
        for spec in BACKENDS
        if spec.runs_on(device.type) and not spec.obstacle(device) and (device.type == "cpu" or spec.cuda_graphs)
    ]


def check_agreement(contestants: dict[str, Contestant], tolerance: float) -> None:
    """All give the same answer, or their times mean nothing."""
    answers = {name: contestant(0) for name, contestant in contestants.items()}
    judge = answers["contiguous SDPA"]
    assert isinstance(judge, Tensor)
    for answer in answers.values():
        assert isinstance(answer, Tensor)
        torch.testing.assert_close(answer.view_as(judge), judge, rtol=tolerance, atol=tolerance)


def race(contestants: dict[str, Contestant], num_layers: int, rounds: int, device: torch.device) -> dict[str, float]:
    """Median seconds a layer of each contestant."""
    runs = {name: replay(contestant, num_layers, device) for name, contestant in contestants.items()}
    times: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(rounds):
        for name, run in runs.items():
            times[name].append(seconds_of(run, device) / num_layers)
    return {name: statistics.median(taken) for name, taken in times.items()}


def replay(contestant: Contestant, num_layers: int, device: torch.device) -> Callable[[], None]:
    """All layers once: in a CUDA graph on a GPU, as a decode step would, so that launches cost nothing."""

    def layers() -> None:
        for i in range(num_layers):
            contestant(i)

    layers()
    if device.type == "cpu":
        return layers
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        layers()
    return graph.replay


if __name__ == "__main__":
    main()
