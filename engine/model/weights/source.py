"""Where the model builder asks for weights, by the names Hugging Face checkpoints give them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from engine.i18n import _
from engine.model.linear import DenseEmbedding, Embedding, Linear, dense_linear, dense_lm_head
from engine.model.load_report import ModelLoadError


class WeightSource(Protocol):
    """One checkpoint, whatever form it is stored in. Names come without their `.weight` ending."""

    @property
    def dtype(self) -> torch.dtype:
        """What the hidden states between the matrix products are kept in."""
        ...

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        ...

    def linear(self, *names: str) -> Linear:
        """One product for several matrices that read the same input, their outputs side by side."""
        ...

    def vector(self, name: str) -> Tensor | None:
        """A norm's scale [hidden_size] or [head_dim], or None where the checkpoint has none of that name."""
        ...

    def embedding_and_lm_head(self) -> tuple[Embedding, Linear]:
        """The two ends of the model, which many checkpoints tie to one matrix."""
        ...


@dataclass(frozen=True)
class DenseSource:
    """Plain tensors fetched by full name, cast and moved one at a time."""

    fetch: Callable[[str], Tensor | None]
    dtype: torch.dtype
    device: torch.device
    tie_word_embeddings: bool

    def linear(self, *names: str) -> Linear:
        """See WeightSource."""
        weights = [self._required(f"{name}.weight") for name in names]
        return dense_linear(_merged(weights), self._bias(names))

    def vector(self, name: str) -> Tensor | None:
        """See WeightSource."""
        tensor = self.fetch(f"{name}.weight")
        return None if tensor is None else self._placed(tensor)

    def embedding_and_lm_head(self) -> tuple[Embedding, Linear]:
        """See WeightSource."""
        embedding = self._required("model.embed_tokens.weight")
        if self.tie_word_embeddings:
            return DenseEmbedding(embedding), dense_lm_head(embedding)
        return DenseEmbedding(embedding), dense_lm_head(self._required("lm_head.weight"), self._bias(("lm_head",)))

    def _bias(self, names: tuple[str, ...]) -> Tensor | None:
        """[out_features] of all `names`, or None when none has a bias."""
        if all(self.fetch(f"{name}.bias") is None for name in names):
            return None
        return _merged([self._required(f"{name}.bias") for name in names])

    def _required(self, name: str) -> Tensor:
        """The tensor of that name, of any shape, as the checkpoint has it. Raises ModelLoadError when it is missing."""
        tensor = self.fetch(name)
        if tensor is None:
            raise ModelLoadError(
                _("The checkpoint has no tensor named {name}; it may be incomplete.").format(name=name)
            )
        return self._placed(tensor)

    def _placed(self, tensor: Tensor) -> Tensor:
        """The tensor, of any shape, on the device and in the type of the model."""
        return tensor.to(device=self.device, dtype=self.dtype)


def _merged(tensors: list[Tensor]) -> Tensor:
    """Matrices [rows_i, columns] concatenated by rows; a single one is not copied (it may be a mapped file)."""
    return tensors[0] if len(tensors) == 1 else torch.cat(tensors)
