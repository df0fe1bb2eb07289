"""Steps on the CPU: all decoder layers in one compiled call, instead of `LlamaModel.forward`.

This is what runs for the embedded model on a fast CPU; engine/model/llama.py is the version to read.

The same kernels compute the same operations; what is saved are the calls (see kernels/decoder_layers). Over four-bit
weights the results are bit for bit the model's. Beside bfloat16 weights, what lies between products stays in float32.

Products, norms and gates do not depend on the other tokens of the batch. Attention has two code paths: with
`batch_invariant` all tokens take the one for prefill; without it a single query token of a sequence (decode) takes a
faster one, which rounds differently.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from engine.model.kv_store import KVStore
from engine.model.linear import Bf16GemmLinear, GroupQuantizedLinear
from engine.model.llama import DecoderLayer, LlamaModel, ModelInputs
from engine.model.rotary import rotation_at


class CompiledSteps:
    """Runs steps of a model whose weights all lie in the order of our own products."""

    def __init__(self, model: LlamaModel, kv_store: KVStore, *, batch_invariant: bool = False) -> None:
        """Of a model for which `can_compile` holds. Nothing is copied but addresses and norms."""
        config = model.config
        self._model = model
        self._kv_store = kv_store
        self._backend = kv_store.backend
        self._batch_invariant = batch_invariant
        addresses = [[matrix.packed.data_ptr() for matrix in _matrices(layer)] for layer in model.layers]
        self._addresses = np.array(addresses, np.uint64)
        norms = [torch.stack([layer.attention_norm, layer.mlp_norm]) for layer in model.layers]
        self._norms = torch.stack(norms).float().numpy()
        self._shape = (config.num_heads, config.num_kv_heads, config.head_dim, config.intermediate_size)
        self.cycles = np.zeros(3, np.int64)
        """Of all steps so far: the clock's cycles in products, in attention and between them."""
        self._windows = np.array([window or 0 for window in config.sliding_windows], np.int64)

    def supports(self, step: ModelInputs) -> bool:
        """True unless the kernels of the store were replaced, to watch them or to break one."""
        return self._kv_store.backend is self._backend

    def run(self, step: ModelInputs) -> Tensor:
        """Logits [num_logit_rows, vocab_size] float32; keys and values are written."""
        return self._model.compute_logits(self.forward(step)[step.logits_indices])

    def forward(self, step: ModelInputs) -> Tensor:
        """As LlamaModel.forward: hidden states [num_tokens, hidden_size], in float32."""
        from kernels.numba_intrinsics import cached_flat_view, flat_view
        from kernels.threads import match_threads, parallel_loops

        model, store = self._model, self._kv_store
        hidden = model.embedding(step.input_ids).float()
        cos, sin = rotation_at(step.positions, model.inv_freq)
        by_layer = (len(self._addresses), -1)
        with parallel_loops():
            self._layers()(
                flat_view(hidden), self._addresses, self._norms, np.float32(model.config.rms_norm_eps), self._shape,
                flat_view(cos), flat_view(sin),
                cached_flat_view(store.key_cache).reshape(by_layer),
                cached_flat_view(store.value_cache).reshape(by_layer),
                self._windows, step.slot_mapping.numpy(),
                step.block_table.numpy(), step.seq_lens.numpy(), step.query_start_loc.numpy(),
                store.block_size, self._batch_invariant, match_threads(), self.cycles,
            )  # fmt: skip
        return hidden

    def _layers(self) -> Callable[..., Any]:
        """Imported by the first step, which compiles it or reads it from Numba's cache."""
        from kernels.decoder_layers.cpu import run_bf16_layers, run_int4_layers

        four_bits = isinstance(self._model.layers[0].qkv, GroupQuantizedLinear)
        return run_int4_layers if four_bits else run_bf16_layers  # type: ignore[no-any-return]


def can_compile(model: LlamaModel, kv_store: KVStore) -> bool:
    """Whether the layers' matrices are all packed for one of our own products, and all kernels are Numba's."""
    if not kv_store.backend.spec.compiled_layers or any(layer.qk_norm is not None for layer in model.layers):
        return False
    return {type(matrix) for layer in model.layers for matrix in _matrices(layer)} in (
        {GroupQuantizedLinear},
        {Bf16GemmLinear},
    )


def _matrices(layer: DecoderLayer) -> tuple[Any, ...]:
    """In the order of kernels.decoder_layers.cpu."""
    return layer.qkv, layer.attention_output, layer.gate_up, layer.down
