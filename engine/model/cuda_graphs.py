"""Decode steps as CUDA graphs: hundreds of kernel launches recorded once for a batch size, replayed as one.

A graph is fixed in its shapes and addresses, so a batch is copied into tensors of its own, padded with rows that write
nothing (slot -1) and see nothing (seq_len 0). Sizes grow by ones, twos and fours and then by eights: padding costs
little where there is little to compute. The greedy choice is part of the graph, so that such a step is one copy to the
GPU, one replay, and one small tensor read back.

Written and compiled without a card: no figure and no run of this file on a GPU exists yet.
"""

from __future__ import annotations

import logging
import threading
from collections import Counter
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from engine.model.input_buffer import InputBuffer, upload
from engine.model.kv_store import KVStore
from engine.model.llama import LlamaModel, ModelInputs
from kernels.device_lost import is_device_lost
from kernels.paged_attention.triton_config import MIN_SPLIT_KEYS

WARM_UP_RUNS = 2
"""Before recording: kernels are compiled and libraries set up by then, neither of which can be recorded."""
RECORD_AFTER = 8
"""Recording takes as long as dozens of eager steps: an engine that runs for a few steps only never pays for it."""
CUDA_LOCK = threading.RLock()
"""Held by every step on a GPU. While one thread records, no other one may launch anything in this process; loading and
sampling only allocate, copy and wait, which the capture's error mode `thread_local` allows other threads."""

_log = logging.getLogger(__name__)


def lock_of(device: torch.device) -> AbstractContextManager[object]:
    """What a step on `device` holds: CUDA_LOCK on a GPU, nothing elsewhere."""
    return CUDA_LOCK if device.type == "cuda" else nullcontext()


def captured_sizes(max_num_seqs: int) -> list[int]:
    """1, 2, 4, 8, 16, 24, ... up to the first that holds `max_num_seqs`."""
    sizes = [1, 2, 4, *range(8, max_num_seqs + 8, 8)]
    return [size for i, size in enumerate(sizes) if i == 0 or sizes[i - 1] < max_num_seqs]


def captured_widths(max_model_len: int, block_size: int) -> list[int]:
    """Blocks in a table: as many as attention reads without splitting a sequence's keys, and as many as there can be.

    Splitting costs a second kernel in every layer, and a graph splits for the widest sequence that its table holds.
    """
    return sorted({-(-min(max_model_len, limit) // block_size) for limit in (MIN_SPLIT_KEYS, max_model_len)})


class _Shape(NamedTuple):
    """What a graph is recorded for: so many sequences, and blocks in the table of each."""

    size: int
    max_blocks_per_seq: int


class StaticBatch:
    """A decode batch of `size` sequences whose tensors never move, all padding until `fill`. Runs on any device."""

    def __init__(self, size: int, max_blocks_per_seq: int, device: torch.device) -> None:
        self._buffer = InputBuffer(
            num_tokens=size, num_seqs=size, num_logit_rows=size, max_blocks_per_seq=max_blocks_per_seq,
            max_query_len=1, device=device,
        )  # fmt: skip
        self.inputs = self._buffer.inputs
        host = self._buffer.host
        host["slot_mapping"][:] = -1
        host["query_start_loc"][:] = range(size + 1)
        host["logits_indices"][:] = range(size)
        self._buffer.send()

    def fill(self, step: ModelInputs) -> None:
        """Copy in a step of at most `size` sequences, which lies in CPU memory; the rows behind it become harmless."""
        host = self._buffer.host
        count, width = len(step.seq_lens), min(step.block_table.shape[1], host["block_table"].shape[1])
        self._buffer.wait()
        for name, padding in (("input_ids", 0), ("positions", 0), ("slot_mapping", -1), ("seq_lens", 0)):
            host[name][:count] = getattr(step, name).numpy()
            host[name][count:] = padding
        table, there = step.block_table.numpy()[:, :width], host["block_table"][:count, :width]
        is_new = not np.array_equal(table, there)
        if is_new:
            there[:] = table
        self._buffer.send(with_table=is_new)


@dataclass(frozen=True)
class _Recorded:
    batch: StaticBatch
    replay: Callable[[], None]
    logits: Tensor  # [size, vocab_size], written by every replay
    choice: Tensor  # [size, 3] float64, too: argmax_logsumexp of the logits


class DecodeGraphs:
    """Records a graph for a batch size that keeps coming up; all share one pool of memory, one stream and one tensor of
    logits.

    A failed recording is logged once; from then on no step is recorded or replayed, and all run eagerly.
    """

    def __init__(
        self, model: LlamaModel, kv_store: KVStore, max_num_seqs: int, max_model_len: int,
        record_after: int = RECORD_AFTER,
    ) -> None:  # fmt: skip
        """`record_after`: the how-manieth step of a size is recorded."""
        self.model = model
        self.kv_store = kv_store
        self.sizes = captured_sizes(max_num_seqs)
        self.widths = captured_widths(max_model_len, kv_store.block_size)
        self.has_failed = False
        self._backend = kv_store.backend
        self._record_after = record_after
        self._num_steps: Counter[_Shape] = Counter()
        self._recorded: dict[_Shape, _Recorded] = {}
        self._pool: Any = None
        self._stream: torch.cuda.Stream | None = None
        self._shared_logits: Tensor | None = None
        self._last: tuple[Tensor, int, Tensor] | None = None
        """Of the last replay: the logits it returned, their version, and what argmax_logsumexp gives for them."""

    def supports(self, step: ModelInputs) -> bool:
        """Whether every sequence has one token, whose next one is wanted, and there is a size for so many.

        False, too, after a failed recording, and while the store's backend is another than at the start (a lab replaces
        kernels to watch or to break them): a graph would go on with the kernels it was recorded with.
        """
        if self.has_failed or self.kv_store.backend is not self._backend:
            return False
        return is_decode(step) and len(step.seq_lens) <= self.sizes[-1]

    def has_recorded(self, step: ModelInputs) -> bool:
        """Whether `run` would replay a graph for this step, and neither record one nor run eagerly."""
        return self.supports(step) and self._shape_of(step) in self._recorded

    def run(self, step: ModelInputs) -> Tensor:
        """Logits [num_seqs, vocab_size] of a step that is supported, valid until the next one.

        `step` lies in CPU memory.
        """
        shape = self._shape_of(step)
        with CUDA_LOCK:
            recorded = self._recorded.get(shape) or self._record_if_frequent(shape, step)
            if recorded is None:
                return self.model.next_token_logits(upload(step, self.model.device), self.kv_store)
            recorded.batch.fill(step)
            recorded.replay()
            count = len(step.seq_lens)
            logits = recorded.logits[:count]
            self._last = (logits, logits._version, recorded.choice[:count])
            return logits

    def argmax_logsumexp(self, logits: Tensor) -> Tensor:
        """As kernels.interface.ArgmaxLogsumexp; the graph has done it for what `run` returned, as long as that is
        unchanged.
        """
        if self._last is not None:
            own, version, choice = self._last
            if logits is own and logits._version == version:
                return choice
        return self._backend.argmax_logsumexp(logits)

    def record_all(self) -> None:
        """Record every size, the largest first, so that smaller ones find their memory in the pool already."""
        for shape in reversed([_Shape(size, width) for width in self.widths for size in self.sizes]):
            with CUDA_LOCK:
                if not self.has_failed and shape not in self._recorded:
                    self._record_shape(shape, StaticBatch(*shape, self.model.device))

    def _shape_of(self, step: ModelInputs) -> _Shape:
        """The smallest that holds a supported step."""
        num_blocks = -(-int(step.seq_lens.numpy().max()) // self.kv_store.block_size)
        size = next(size for size in self.sizes if size >= len(step.seq_lens))
        return _Shape(size, next(width for width in self.widths if width >= num_blocks))

    def _record_if_frequent(self, shape: _Shape, step: ModelInputs) -> _Recorded | None:
        """None where the step has to run eagerly: its shape is too rare yet, or recording failed."""
        self._num_steps[shape] += 1
        if self._num_steps[shape] < self._record_after:
            return None
        batch = StaticBatch(*shape, self.model.device)
        batch.fill(step)
        return self._record_shape(shape, batch)

    def _record_shape(self, shape: _Shape, batch: StaticBatch) -> _Recorded | None:
        """None, and no recording ever after, where it fails."""
        try:
            recorded = self._record(batch)
        except Exception as error:
            if is_device_lost(error):
                raise
            _log.exception(
                "a CUDA graph of %d sequences cannot be recorded; all steps run eagerly from now on", shape.size
            )
            self.has_failed = True
            self._recorded.clear()
            return None
        self._recorded[shape] = recorded
        return recorded

    def _record(self, batch: StaticBatch) -> _Recorded:
        before = torch.cuda.current_stream()
        if self._stream is None:
            self._pool = torch.cuda.graph_pool_handle()
            self._stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        self._stream.wait_stream(before)
        graph = torch.cuda.CUDAGraph()
        try:
            logits = self._logits_buffer(len(batch.inputs.seq_lens))
            with torch.cuda.stream(self._stream):
                for _index in range(WARM_UP_RUNS):
                    self._backend.argmax_logsumexp(self._logits(batch))
            before.wait_stream(self._stream)
            with torch.cuda.graph(graph, pool=self._pool, stream=self._stream, capture_error_mode="thread_local"):
                logits.copy_(self._logits(batch))
                choice = self._backend.argmax_logsumexp(logits)
        finally:
            # torch.cuda.graph leaves its stream current when the end of the capture raises.
            torch.cuda.set_stream(before)
        return _Recorded(batch, graph.replay, logits, choice)

    def _logits_buffer(self, size: int) -> Tensor:
        """[size, vocab_size] float32: the first rows of what all sizes write. Their own ones would fill gigabytes."""
        if self._shared_logits is None:
            shape = (self.sizes[-1], self.model.config.vocab_size)
            self._shared_logits = torch.empty(shape, dtype=torch.float32, device=self.model.device)
        return self._shared_logits[:size]

    def _logits(self, batch: StaticBatch) -> Tensor:
        """[batch size, vocab_size] float32."""
        return self.model.compute_logits(self.model.forward(batch.inputs, self.kv_store))


def is_decode(step: ModelInputs) -> bool:
    """Read from shapes alone, so that no GPU is waited for."""
    return len(step.input_ids) == len(step.seq_lens) == len(step.logits_indices)
