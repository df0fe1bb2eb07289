"""Steps on the CPU: all layers in one compiled call, in the place of `LlamaModel.forward`.

The same kernels compute the same operations; what is saved are the calls (see kernels/decoder_layers). Over four-bit
weights the results are bit for bit the model's. Beside bfloat16 weights, what lies between products stays in float32.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from engine.kv_store import KVStore
from engine.linear import GroupedLinear, TiledLinear
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
        addresses = [[matrix.packed.data_ptr() for matrix in _matrices(layer)] for layer in model.layers]
        self._addresses = np.array(addresses, np.uint64)
        norms = [torch.stack([layer.attention_norm, layer.mlp_norm]) for layer in model.layers]
        self._norms = torch.stack(norms).float().numpy()
        self._shape = (config.num_heads, config.num_kv_heads, config.head_dim, config.intermediate_size)
        self.ticks = np.zeros(3, np.int64)
        """Of all steps so far: the clock's ticks in products, in attention and between them."""
        self._windows = np.array([window or 0 for window in config.sliding_windows], np.int64)

    def fits(self, step: ModelInputs) -> bool:
        """Unless somebody stands in front of the kernels, to watch them or to break one."""
        return self._kv_store.backend is self._backend

    def run(self, step: ModelInputs) -> Tensor:
        """Logits [num_logit_rows, vocab_size] float32; keys and values are written."""
        return self._model.compute_logits(self.forward(step)[step.logits_indices])

    def forward(self, step: ModelInputs) -> Tensor:
        """As LlamaModel.forward: hidden states [num_tokens, hidden_size], in float32."""
        from kernels.numba_math import flat_view, lasting_view
        from kernels.threads import match_threads

        model, store = self._model, self._kv_store
        hidden = model.embedding(step.input_ids).float()
        cos, sin = rotation_at(step.positions, model.frequencies)
        by_layer = (len(self._addresses), -1)
        self._layers()(
            flat_view(hidden), self._addresses, self._norms, np.float32(model.config.rms_norm_eps), self._shape,
            flat_view(cos), flat_view(sin),
            lasting_view(store.key_cache).reshape(by_layer), lasting_view(store.value_cache).reshape(by_layer),
            self._windows, step.slot_mapping.numpy(),
            step.block_table.numpy(), step.seq_lens.numpy(), step.query_start_loc.numpy(),
            store.block_size, match_threads(), self.ticks,
        )  # fmt: skip
        return hidden

    def _layers(self) -> Callable[..., Any]:
        """Imported by the first step, which compiles it or reads it from Numba's cache."""
        from kernels.decoder_layers.cpu import run_bfloat16_layers, run_four_bit_layers

        four_bits = isinstance(self._model.layers[0].qkv, GroupedLinear)
        return run_four_bit_layers if four_bits else run_bfloat16_layers  # type: ignore[no-any-return]


def can_compile(model: LlamaModel, kv_store: KVStore) -> bool:
    """Whether the layers' matrices are all packed for one of our own products, and all kernels are Numba's."""
    if kv_store.backend.name != "cpu" or any(layer.qk_norm is not None for layer in model.layers):
        return False
    return {type(matrix) for layer in model.layers for matrix in _matrices(layer)} in ({GroupedLinear}, {TiledLinear})


def _matrices(layer: DecoderLayer) -> tuple[Any, ...]:
    """In the order of kernels.decoder_layers.cpu."""
    return layer.qkv, layer.attention_output, layer.gate_up, layer.down
