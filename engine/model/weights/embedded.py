"""The default model, SmolLM2-135M-Instruct: fetched once, converted once, then mapped from the cache.

The cache keeps the quantised numbers as the GGUF has them (99 MB) and no second form: float32 and bfloat16 are
dequantised from them, and four bits are repacked, in well under a second at each start. torch's packed order
differs from CPU to CPU, so a packed file would not survive a move to another machine.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import torch
from torch import Tensor

from engine.i18n import _
from engine.model.linear import DenseEmbedding, Embedding, Linear, dense_linear, dense_lm_head
from engine.model.load_report import Progress, ProgressCallback
from engine.model.quantization import EightBitGroups, FourBitGroups
from engine.model.weights.cache import cached_folder
from engine.model.weights.download import fetch_gguf
from engine.model.weights.source import WeightSource

EMBEDDED_MODEL = "smollm2-135m-instruct"
WEIGHTS_FILE = "weights.safetensors"
CACHE_NAME = f"{EMBEDDED_MODEL}-1"  # raise the number when the form of the converted files changes

Fetch = Callable[[Path, ProgressCallback], Path]


def embedded_folder(progress: ProgressCallback, fetch: Fetch = fetch_gguf) -> Path:
    """The cached, checked folder with `weights.safetensors`, `config.json` and the tokenizer's files."""
    return cached_folder(CACHE_NAME, partial(_fetch_and_convert, progress=progress, fetch=fetch))


def embedded_source(folder: Path, dtype: torch.dtype, device: torch.device) -> WeightSource:
    """The weights as dense float32, float16 or bfloat16."""
    return DequantisedSource(read_tensors(folder), dtype, device)


def embedded_int4_source(folder: Path) -> WeightSource:
    """The weights in their own four bits, for the CPU."""
    return FourBitSource(read_tensors(folder), torch.device("cpu"))


def read_tensors(folder: Path) -> dict[str, Tensor]:
    """The quantised tensors, mapped from the file; names and shapes as in `gguf.read_weights`: [rows, groups, ...]."""
    from safetensors import safe_open  # here, because the other models of this engine do without

    with safe_open(folder / WEIGHTS_FILE, framework="pt") as file:
        return {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118  (not a dict)


def four_bits(tensors: dict[str, Tensor], *names: str) -> FourBitGroups:
    """The matrices `names` concatenated by rows: [rows, columns] in groups of 32 columns."""

    def rows(part: str) -> Tensor:
        """[rows, ...] of one part of all matrices."""
        return torch.cat([tensors[f"{name}.{part}"] for name in names])

    return FourBitGroups(rows("nibbles"), rows("scale"), rows("minimum"))


def eight_bits(tensors: dict[str, Tensor], name: str) -> EightBitGroups:
    """The matrix `name`, [rows, columns] in groups of 32 columns."""
    return EightBitGroups(tensors[f"{name}.quantised"], tensors[f"{name}.scale"])


@dataclass(frozen=True)
class DequantisedSource:
    """A WeightSource of dense matrices, dequantised once while loading."""

    tensors: dict[str, Tensor]
    dtype: torch.dtype
    device: torch.device

    def linear(self, *names: str) -> Linear:
        """See WeightSource."""
        return dense_linear(four_bits(self.tensors, *names).dequantised(self.dtype).to(self.device))

    def vector(self, name: str) -> Tensor | None:
        """[hidden_size], or None."""
        vector = _vector(self.tensors, name, self.dtype)
        return None if vector is None else vector.to(self.device)

    def embedding_and_lm_head(self) -> tuple[Embedding, Linear]:
        """See WeightSource."""
        tied = eight_bits(self.tensors, "model.embed_tokens").dequantised(self.dtype).to(self.device)
        return DenseEmbedding(tied), dense_lm_head(tied)


@dataclass(frozen=True)
class FourBitSource:
    """Products over four and eight bits; what lies between them is float32, which costs next to nothing there."""

    tensors: dict[str, Tensor]
    device: torch.device
    dtype: torch.dtype = torch.float32

    def linear(self, *names: str) -> Linear:
        """See WeightSource."""
        return four_bits(self.tensors, *names).as_linear()

    def vector(self, name: str) -> Tensor | None:
        """[hidden_size], or None."""
        return _vector(self.tensors, name, self.dtype)

    def embedding_and_lm_head(self) -> tuple[Embedding, Linear]:
        """See WeightSource."""
        embedding = eight_bits(self.tensors, "model.embed_tokens")
        return embedding, embedding.as_lm_head()


def _vector(tensors: dict[str, Tensor], name: str, dtype: torch.dtype) -> Tensor | None:
    """[hidden_size] in `dtype`, or None where there is none of that name."""
    vector = tensors.get(f"{name}.weight")
    return None if vector is None else vector.to(dtype)


def _fetch_and_convert(folder: Path, progress: ProgressCallback, fetch: Fetch) -> None:
    # Imported here because only the first start reads a GGUF.
    from engine.model.weights.gguf import convert_gguf

    gguf = fetch(folder, progress)
    size = gguf.stat().st_size
    progress(Progress(0, size, _("Converting the model, once")))
    convert_gguf(gguf, folder, WEIGHTS_FILE)
    gguf.unlink()
    progress(Progress(size, size, _("Converting the model, once")))
