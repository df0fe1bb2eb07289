"""The memory behind the block pool: keys and values of every layer, on the device and in the CPU swap pool."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import torch
from torch import Tensor

from engine.i18n import _
from engine.model.device import available_memory, to_device
from engine.trace.validation import checked_permutation
from kernels.backend import Backend

_INTEGER_OF_SIZE = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}

BlockPairs = Iterable[tuple[int, int]]
"""(source block id, destination block id)."""


class KVStore:
    """Blocks as tensors. Which block belongs to whom is the block pool's knowledge, not this one's.

    `key_cache`, `value_cache`          [num_layers, num_blocks, block_size, num_kv_heads, head_dim] on `device`
    `cpu_key_cache`, `cpu_value_cache`  the same with num_cpu_blocks, in CPU memory, for swapped-out blocks
    """

    def __init__(
        self,
        *,
        num_layers: int,
        num_blocks: int,
        block_size: int,
        num_kv_heads: int,
        head_dim: int,
        dtype: torch.dtype,
        device: torch.device,
        num_cpu_blocks: int,
        backend: Backend,
    ) -> None:
        """Raises MemoryError, naming the size, when the tensors cannot fit in what memory is left."""
        self.num_blocks = num_blocks
        self.num_cpu_blocks = num_cpu_blocks
        self.block_size = block_size
        self.backend = backend
        block = (block_size, num_kv_heads, head_dim)
        _refuse_what_cannot_fit((num_layers, num_blocks, *block), dtype, device)
        self.key_cache = torch.zeros(num_layers, num_blocks, *block, dtype=dtype, device=device)
        self.value_cache = torch.zeros_like(self.key_cache)
        cpu = torch.device("cpu")
        _refuse_what_cannot_fit((num_layers, num_cpu_blocks, *block), dtype, cpu)
        self.cpu_key_cache = torch.zeros(num_layers, num_cpu_blocks, *block, dtype=dtype, device=cpu)
        self.cpu_value_cache = torch.zeros_like(self.cpu_key_cache)
        self._layers = list(zip(self.key_cache, self.value_cache, strict=True))

    def layer(self, index: int) -> tuple[Tensor, Tensor]:
        """One layer's key and value cache, views of [num_blocks, block_size, num_kv_heads, head_dim]."""
        return self._layers[index]

    @property
    def nbytes(self) -> int:
        """Bytes of keys and values on the device."""
        return self.key_cache.nbytes + self.value_cache.nbytes

    def copy_blocks(self, pairs: BlockPairs) -> None:
        """Copy whole blocks in every layer (copy-on-write). No destination may also be a source."""
        caches = [cache for layer in self._layers for cache in layer]
        self.backend.copy_blocks(caches, to_device(_as_tensor(pairs), self.key_cache.device))

    def copy_block(self, src: int, dst: int) -> None:
        """`copy_blocks` of one pair."""
        self.copy_blocks([(src, dst)])

    def swap_out(self, pairs: BlockPairs) -> None:
        """Copy blocks from the device to the CPU pool: (device block, CPU block)."""
        self._swap(self.key_cache, self.cpu_key_cache, pairs)
        self._swap(self.value_cache, self.cpu_value_cache, pairs)

    def swap_in(self, pairs: BlockPairs) -> None:
        """Copy blocks from the CPU pool back to the device: (CPU block, device block)."""
        self._swap(self.cpu_key_cache, self.key_cache, pairs)
        self._swap(self.cpu_value_cache, self.value_cache, pairs)

    def permute(self, permutation: Sequence[int]) -> None:
        """Move the data of block i to block `permutation[i]`, in the same tensors, one layer at a time.

        Raises ValueError unless every block id appears exactly once.
        """
        block_ids = checked_permutation(permutation, self.num_blocks)
        moved_to = torch.tensor(block_ids, dtype=torch.int64, device=self.key_cache.device)
        for layer in self._layers:
            for cache in layer:
                cache.index_copy_(0, moved_to, cache.clone())

    def fingerprints(self) -> list[int]:
        """A number for each slot of the device, by its bits in the first layer (every layer uses the same slots)."""
        key_cache, value_cache = self._layers[0]
        rows = torch.cat([key_cache.flatten(0, 1).flatten(1), value_cache.flatten(0, 1).flatten(1)], dim=1)
        bits = rows.view(_INTEGER_OF_SIZE[rows.itemsize]).to(torch.int64)
        odd_numbers = torch.arange(1, 2 * bits.shape[1], 2, device=bits.device) * 0x1E3779B97F4A7C15
        return [int(number) for number in (bits * odd_numbers).sum(dim=1).tolist()]

    def _swap(self, source: Tensor, destination: Tensor, pairs: BlockPairs) -> None:
        """Copy blocks of all layers between caches [num_layers, num_blocks, block_size, num_kv_heads, head_dim]."""
        self.backend.swap_blocks(source, destination, _as_tensor(pairs))


def _as_tensor(pairs: BlockPairs) -> Tensor:
    """[n, 2] int64."""
    return torch.tensor(list(pairs), dtype=torch.int64).view(-1, 2)


def _refuse_what_cannot_fit(shape: tuple[int, ...], dtype: torch.dtype, device: torch.device) -> None:
    needed = 2 * dtype.itemsize * torch.Size(shape).numel()
    available = available_memory(device)
    if available is not None and needed > available:
        raise MemoryError(
            _(
                "{num_blocks} blocks of {block_size} tokens would need {needed} for keys and values, but only "
                "{available} is free on {type}. Choose fewer or smaller blocks."
            ).format(
                num_blocks=shape[1],
                block_size=shape[2],
                needed=_gib(needed),
                available=_gib(available),
                type=device.type,
            )
        )


def _gib(nbytes: int) -> str:
    return f"{nbytes / 2**30:,.1f} GiB"
