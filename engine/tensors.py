"""Tensors on their way to where the model runs."""

from __future__ import annotations

import torch
from torch import Tensor


def to_device(tensor: Tensor, device: torch.device) -> Tensor:
    """On a GPU through pinned memory, so that nobody waits for the copy; the CPU keeps what it has."""
    if device.type != "cuda":
        return tensor.to(device)
    return tensor.pin_memory().to(device, non_blocking=True)
