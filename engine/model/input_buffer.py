"""A step's inputs in one piece of memory, so that one copy brings them to a GPU.

Each copy costs a launch, however small it is, and a decode step has seven small tensors.
"""

from __future__ import annotations

from math import prod

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from engine.model.llama import ModelInputs

ALIGNMENT = 64
"""Bytes. Triton compiles a kernel anew for a pointer that is not a multiple of 16."""


class InputBuffer:
    """Room for one step on the host, pinned where the device is a GPU, and as much on the device.

    `host` has an array for each tensor of ModelInputs, `inputs` is the same on the device. Write to `host` between
    `wait` and `send`.
    """

    def __init__(
        self, *, num_tokens: int, num_seqs: int, num_logit_rows: int, max_blocks_per_seq: int, max_query_len: int,
        device: torch.device,
    ) -> None:  # fmt: skip
        """All zeros in both places."""
        shapes: dict[str, tuple[tuple[int, ...], torch.dtype]] = {
            "input_ids": ((num_tokens,), torch.int64),
            "positions": ((num_tokens,), torch.int64),
            "slot_mapping": ((num_tokens,), torch.int64),
            "logits_indices": ((num_logit_rows,), torch.int64),
            "seq_lens": ((num_seqs,), torch.int32),
            "query_start_loc": ((num_seqs + 1,), torch.int32),
            # Last, so that a copy can leave it out: it changes once in block_size steps.
            "block_table": ((num_seqs, max_blocks_per_seq), torch.int32),
        }
        self._starts, size = {}, 0
        for name, (shape, dtype) in shapes.items():
            self._starts[name] = size
            size += -(-prod(shape) * dtype.itemsize // ALIGNMENT) * ALIGNMENT
        self._host_bytes = torch.zeros(size, dtype=torch.uint8, pin_memory=device.type == "cuda")
        self._device_bytes = torch.zeros(size, dtype=torch.uint8, device=device)
        self._sent = torch.cuda.Event() if device.type == "cuda" else None  # type: ignore[no-untyped-call]
        memory = self._host_bytes.numpy()
        self.host: dict[str, NDArray[np.integer]] = {}
        tensors: dict[str, Tensor] = {}
        for name, (shape, dtype) in shapes.items():
            here = slice(self._starts[name], self._starts[name] + prod(shape) * dtype.itemsize)
            self.host[name] = memory[here].view(str(dtype).removeprefix("torch.")).reshape(shape)
            tensors[name] = self._device_bytes[here].view(dtype).view(shape)
        self.inputs = ModelInputs(**tensors, max_query_len=max_query_len)

    def wait(self) -> None:
        """Until the last `send` has read `host`: it has, long before, where anything of that step was read back."""
        if self._sent is not None:
            self._sent.synchronize()

    def send(self, *, with_table: bool = True) -> None:
        """Copy `host` to the device, in one go and without waiting; the block table only where asked for."""
        end = len(self._host_bytes) if with_table else self._starts["block_table"]
        self._device_bytes[:end].copy_(self._host_bytes[:end], non_blocking=True)
        if self._sent is not None:
            self._sent.record()


def upload(step: ModelInputs, device: torch.device) -> ModelInputs:
    """A step of CPU tensors on `device`, by one copy; the step itself where that is the CPU."""
    if device.type == "cpu":
        return step
    num_seqs, width = step.block_table.shape
    buffer = InputBuffer(
        num_tokens=len(step.input_ids), num_seqs=num_seqs, num_logit_rows=len(step.logits_indices),
        max_blocks_per_seq=width, max_query_len=step.max_query_len, device=device,
    )  # fmt: skip
    for name, array in buffer.host.items():
        array[:] = getattr(step, name).numpy()
    buffer.send()
    return buffer.inputs
