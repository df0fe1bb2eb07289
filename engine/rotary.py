"""Rotary position embedding (Su et al. 2021), in the half-split layout of Hugging Face checkpoints.

All in float32 and in transformers' order of operations, so that results agree with it to the last digit.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from engine.model_config import RopeConfig

Rotation = tuple[Tensor, Tensor]
"""Cosine and sine of every token's angles, each [num_tokens, head_dim / 2] float32."""


def inverse_frequencies(rope: RopeConfig, head_dim: int) -> Tensor:
    """Angular frequencies in radians a position: [head_dim / 2] float32."""
    frequencies = 1.0 / rope.theta ** (torch.arange(0, head_dim, 2).float() / head_dim)
    if rope.rope_type == "linear":
        return frequencies / rope.factor
    if rope.rope_type == "llama3":
        return _stretch_long_wavelengths(frequencies, rope)
    return frequencies


def _stretch_long_wavelengths(frequencies: Tensor, rope: RopeConfig) -> Tensor:
    """Llama 3.1: slow angles are slowed by `factor`, fast ones kept, those between blended linearly.

    How slow is counted in full turns over the length the model was first trained on.
    """
    turns = rope.original_max_position_embeddings * frequencies / (2 * math.pi)
    kept = (turns - rope.low_freq_factor) / (rope.high_freq_factor - rope.low_freq_factor)
    kept = kept.clamp(0, 1)
    return (1 - kept) * frequencies / rope.factor + kept * frequencies


def rotation_at(positions: Tensor, frequencies: Tensor) -> Rotation:
    """The rotation of each token: `positions` [num_tokens], `frequencies` [head_dim / 2]."""
    angles = positions[:, None].float() * frequencies
    return angles.cos(), angles.sin()
