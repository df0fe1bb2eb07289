"""Decode steps as CUDA graphs: hundreds of kernel launches recorded once for a batch size, replayed as one.

A graph is fixed in its shapes and addresses, so a batch is copied into tensors of its own, padded with rows that write
nothing (slot -1) and see nothing (seq_len 0). Sizes grow by ones, twos and fours and then by eights: padding costs
little where there is little to compute.

Written and compiled without a card: no figure and no run of this file on a GPU exists yet.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from engine.kv_store import KVStore
from engine.model import LlamaModel, ModelInputs

WARM_UP_RUNS = 2
"""Before recording: kernels are compiled and libraries set up by then, neither of which can be recorded."""


def captured_sizes(max_num_seqs: int) -> list[int]:
    """1, 2, 4, 8, 16, 24, ... up to the first that holds `max_num_seqs`."""
    sizes = [1, 2, 4, *range(8, max_num_seqs + 8, 8)]
    return [size for i, size in enumerate(sizes) if i == 0 or sizes[i - 1] < max_num_seqs]


class StaticBatch:
    """A decode batch of `size` sequences whose tensors never move. Runs on any device."""

    def __init__(self, size: int, max_blocks_per_seq: int, device: torch.device) -> None:
        def zeros(*shape: int, dtype: torch.dtype = torch.int64) -> Tensor:
            return torch.zeros(*shape, dtype=dtype, device=device)

        self.inputs = ModelInputs(
            input_ids=zeros(size),
            positions=zeros(size),
            slot_mapping=zeros(size),
            block_table=zeros(size, max_blocks_per_seq, dtype=torch.int32),
            seq_lens=zeros(size, dtype=torch.int32),
            query_start_loc=torch.arange(size + 1, dtype=torch.int32, device=device),
            logits_indices=torch.arange(size, device=device),
        )

    def fill(self, step: ModelInputs) -> None:
        """Copy a step of at most `size` sequences in, and make the rows behind it harmless."""
        count, width = step.block_table.shape
        width = min(width, self.inputs.block_table.shape[1])
        self.inputs.block_table[:count, :width].copy_(step.block_table[:, :width])
        for name, padding in (("input_ids", 0), ("positions", 0), ("slot_mapping", -1), ("seq_lens", 0)):
            mine: Tensor = getattr(self.inputs, name)
            mine[:count].copy_(getattr(step, name))
            mine[count:].fill_(padding)


@dataclass(frozen=True)
class _Recorded:
    batch: StaticBatch
    graph: torch.cuda.CUDAGraph
    logits: Tensor  # [size, vocab_size], written by every replay


class DecodeGraphs:
    """Records a graph when a batch size first comes up; all share one pool of memory."""

    def __init__(self, model: LlamaModel, kv_store: KVStore, max_num_seqs: int, max_model_len: int) -> None:
        self.model = model
        self.kv_store = kv_store
        self.sizes = captured_sizes(max_num_seqs)
        self.max_blocks_per_seq = -(-max_model_len // kv_store.block_size)
        self._pool = torch.cuda.graph_pool_handle()
        self._recorded: dict[int, _Recorded] = {}

    def fits(self, step: ModelInputs) -> bool:
        """Whether every sequence has one token, whose next one is wanted, and there is a size for so many."""
        return is_decode(step) and len(step.seq_lens) <= self.sizes[-1]

    def run(self, step: ModelInputs) -> Tensor:
        """Logits [num_seqs, vocab_size] of a step that fits, valid until the next one."""
        count = len(step.seq_lens)
        size = next(size for size in self.sizes if size >= count)
        recorded = self._recorded.get(size)
        if recorded is None:
            batch = StaticBatch(size, self.max_blocks_per_seq, self.model.device)
            batch.fill(step)
            recorded = self._recorded[size] = self._record(batch)
        recorded.batch.fill(step)
        recorded.graph.replay()
        return recorded.logits[:count]

    def _record(self, batch: StaticBatch) -> _Recorded:
        stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(WARM_UP_RUNS):
                self._logits(batch)
        torch.cuda.current_stream().wait_stream(stream)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, pool=self._pool):
            logits = self._logits(batch)
        return _Recorded(batch, graph, logits)

    def _logits(self, batch: StaticBatch) -> Tensor:
        return self.model.compute_logits(self.model.forward(batch.inputs, self.kv_store))


def is_decode(step: ModelInputs) -> bool:
    """Read from shapes alone, so that no GPU is waited for."""
    return len(step.input_ids) == len(step.seq_lens) == len(step.logits_indices)
