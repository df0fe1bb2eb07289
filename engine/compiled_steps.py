"""Steps of a four-bit model on the CPU: all layers in one compiled call, in the place of `LlamaModel.forward`.

It computes what the model computes with the same kernels, operation for operation and bit for bit; what is saved are
the calls. See kernels/decoder_layers.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from engine.kv_store import KVStore
from engine.linear import GroupedLinear
from engine.model import DecoderLayer, LlamaModel, ModelInputs
from engine.rotary import rotation_at


class CompiledSteps:
    """Prefill takes the same way as decoding, so that no number depends on how tokens were cut into steps."""

    def __init__(self, model: LlamaModel, kv_store: KVStore) -> None:
        """Of a model for which `can_compile` holds. Nothing is copied but addresses and norms."""
        config = model.config
        self._model = model
        self._kv_store = kv_store
        self._backend = kv_store.backend
        self._addresses = np.array(
            [[m.packed.data_ptr() for m in _matrices(layer)] for layer in model.layers], np.uint64
        )
        self._norms = torch.stack([torch.stack([layer.attention_norm, layer.mlp_norm]) for layer in model.layers])
        self._shape = (config.num_heads, config.num_kv_heads, config.head_dim, config.intermediate_size)
        self._windows = np.array([window or 0 for window in config.sliding_windows], np.int64)

    def fits(self, step: ModelInputs) -> bool:
        """Unless somebody stands in front of the kernels, to watch them or to break one."""
        return self._kv_store.backend is self._backend

    def run(self, step: ModelInputs) -> Tensor:
        """Logits [num_logit_rows, vocab_size] float32; keys and values are written."""
        from kernels.decoder_layers.cpu import run_layers  # compiled, or read from its cache, by the first step
        from kernels.numba_math import flat_view, lasting_view
        from kernels.threads import match_threads

        model, store = self._model, self._kv_store
        by_layer = (len(self._addresses), -1)
        hidden = model.embedding(step.input_ids)
        cos, sin = rotation_at(step.positions, model.frequencies)
        run_layers(
            flat_view(hidden), self._addresses, self._norms.numpy(), np.float32(model.config.rms_norm_eps), self._shape,
            flat_view(cos), flat_view(sin),
            lasting_view(store.key_cache).reshape(by_layer), lasting_view(store.value_cache).reshape(by_layer),
            self._windows, step.slot_mapping.numpy(),
            step.block_table.numpy(), step.seq_lens.numpy(), step.query_start_loc.numpy(),
            store.block_size, match_threads(),
        )  # fmt: skip
        return model.compute_logits(hidden[step.logits_indices])


def can_compile(model: LlamaModel, kv_store: KVStore) -> bool:
    """Whether every matrix of the layers is packed for our own four-bit product, and all kernels are Numba's."""
    return kv_store.backend.name == "cpu" and all(
        layer.qk_norm is None and all(isinstance(matrix, GroupedLinear) for matrix in _matrices(layer))
        for layer in model.layers
    )


def _matrices(layer: DecoderLayer) -> tuple[GroupedLinear, ...]:
    """In the order of kernels.decoder_layers.cpu."""
    return layer.qkv, layer.attention_output, layer.gate_up, layer.down  # type: ignore[return-value]
