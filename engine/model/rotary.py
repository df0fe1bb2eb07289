"""Rotary position embedding (Su et al. 2021), in the half-split layout of Hugging Face checkpoints.

All in float32 and in transformers' order of operations, so that results agree with it to the last digit.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from engine.model.config import RopeConfig

Rotation = tuple[Tensor, Tensor]
"""Cosine and sine of every token's angles, each [num_tokens, head_dim / 2] float32."""


def compute_inv_freq(rope: RopeConfig, head_dim: int) -> Tensor:
    """Angular frequencies in radians a position: [head_dim / 2] float32."""
    inv_freq = 1.0 / rope.theta ** (torch.arange(0, head_dim, 2).float() / head_dim)
    if rope.rope_type == "linear":
        return inv_freq / rope.factor
    if rope.rope_type == "llama3":
        return _stretch_long_wavelengths(inv_freq, rope)
    return inv_freq


def _stretch_long_wavelengths(inv_freq: Tensor, rope: RopeConfig) -> Tensor:
    """Llama 3.1: low frequencies are divided by `factor`, high ones kept, those between interpolated.

    `inv_freq` [head_dim / 2] -> the same shape. They are compared by the turns over the original context length.
    """
    turns = rope.original_max_position_embeddings * inv_freq / (2 * math.pi)
    kept = (turns - rope.low_freq_factor) / (rope.high_freq_factor - rope.low_freq_factor)
    kept = kept.clamp(0, 1)
    return (1 - kept) * inv_freq / rope.factor + kept * inv_freq


def rotation_at(positions: Tensor, inv_freq: Tensor) -> Rotation:
    """Cosine and sine [num_tokens, head_dim / 2] of `positions` [num_tokens] times `inv_freq` [head_dim / 2]."""
    angles = positions[:, None] * inv_freq
    return angles.cos(), angles.sin()
