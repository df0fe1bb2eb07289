"""Where the model builder asks for weights, by the names Hugging Face checkpoints give them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from engine.linear import DenseEmbedding, Embedding, Linear, dense_linear
from engine.model_errors import ModelLoadError


class WeightSource(Protocol):
    """One checkpoint, whatever form it is stored in. Names come without their `.weight` ending."""

    @property
    def dtype(self) -> torch.dtype:
        """What the hidden states between the matrix products are kept in."""
        ...

    @property
    def device(self) -> torch.device: ...

    def linear(self, *names: str) -> Linear:
        """One product for several matrices that read the same input, their outputs side by side."""
        ...

    def vector(self, name: str) -> Tensor | None:
        """A norm's scale, or None where the checkpoint has none of that name."""
        ...

    def embedding_and_head(self) -> tuple[Embedding, Linear]:
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
        weights = [self._required(f"{name}.weight") for name in names]
        return dense_linear(_merged(weights), self._bias(names))

    def vector(self, name: str) -> Tensor | None:
        tensor = self.fetch(f"{name}.weight")
        return None if tensor is None else self._placed(tensor)

    def embedding_and_head(self) -> tuple[Embedding, Linear]:
        embedding = self._required("model.embed_tokens.weight")
        head = dense_linear(embedding) if self.tie_word_embeddings else self.linear("lm_head")
        return DenseEmbedding(embedding), head

    def _bias(self, names: tuple[str, ...]) -> Tensor | None:
        if all(self.fetch(f"{name}.bias") is None for name in names):
            return None
        return _merged([self._required(f"{name}.bias") for name in names])

    def _required(self, name: str) -> Tensor:
        tensor = self.fetch(name)
        if tensor is None:
            raise ModelLoadError(f"The checkpoint has no tensor named {name}; it may be incomplete.")
        return self._placed(tensor)

    def _placed(self, tensor: Tensor) -> Tensor:
        return tensor.to(device=self.device, dtype=self.dtype)


def _merged(tensors: list[Tensor]) -> Tensor:
    """A single tensor stays what it is (perhaps a view of the mapped file); several are copied together."""
    return tensors[0] if len(tensors) == 1 else torch.cat(tensors)
