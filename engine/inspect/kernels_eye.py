"""What one kernel program sees: for a query token, layer and head, the blocks it visits and the softmax as it grows.

The query is the real one: the token runs through the model once more, reading the keys and values that lie in the
pool and writing none. The arithmetic is done here block by block, in float64; the kernel's own output and
log-sum-exp for the same query are returned beside it, with the tolerance within which they must agree.

A visit is one block. The kernels take more keys at a time (`keys_at_once`); the running figures at the end are the
same. Nothing is written: a page calls this between two steps.
"""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from engine.engine import Engine
from engine.i18n import _
from engine.inspect.kernel_source import SourceLine, kernel_lines
from engine.model.kv_store import KVStore
from engine.model.llama import ModelInputs
from engine.runner import ModelRunner
from engine.trace.state import SequenceState
from engine.trace.usage import address_of
from kernels.interface import PagedAttention

TOLERANCE = {"float32": 1e-4, "float16": 1e-2, "bfloat16": 5e-2}
"""Largest difference of an output element or a log-sum-exp that rounding explains, by the pool's number type."""


@dataclass(frozen=True, slots=True)
class SeenToken:
    """`score` = query . key * scale; `weight` = its share of the whole softmax, 0 to 1."""

    position: int
    slot: int
    piece: str
    score: float
    weight: float


@dataclass(frozen=True, slots=True)
class BlockVisit:
    """One block. `maximum`, `total`: the running figures after it (total = sum of exp(score - maximum)).

    `exponentials`: exp(score - maximum) of each token here, what it adds to the total. `shrink`: what the
    total so far was multiplied by because the maximum grew. `weight`: the block's final share.
    """

    logical_index: int
    block_id: int
    tokens: tuple[SeenToken, ...]
    exponentials: tuple[float, ...]
    shrink: float
    maximum: float
    total: float
    weight: float


@dataclass(frozen=True, slots=True)
class KernelView:
    """`output` [head_dim] and `log_sum_exp`: from the visits; `kernel_*`: from the kernel that runs in this engine.

    keys_at_once: how many keys that kernel scores before it goes on; None: all of the sequence.
    """

    seq_id: str
    position: int
    layer: int
    head: int
    kv_head: int
    scale: float
    query: tuple[float, ...]
    visits: tuple[BlockVisit, ...]
    output: tuple[float, ...]
    log_sum_exp: float
    kernel_output: tuple[float, ...]
    kernel_log_sum_exp: float
    tolerance: float
    backend: str
    keys_at_once: int | None
    source: tuple[SourceLine, ...]

    @property
    def largest_difference(self) -> float:
        """Between the visits and the kernel, over the output's elements and the log-sum-exp."""
        pairs = [*zip(self.output, self.kernel_output, strict=True), (self.log_sum_exp, self.kernel_log_sum_exp)]
        return max(abs(mine - kernels) for mine, kernels in pairs)

    @property
    def agrees(self) -> bool:
        """Whether visits and kernel agree within `tolerance`."""
        return self.largest_difference <= self.tolerance


def kernels_eye(engine: Engine, seq_id: str, position: int, layer: int, head: int) -> KernelView:
    """Raises IndexError when that token, layer or head is not in the pool, ValueError when there is no model."""
    store, runner = engine.components.store, engine.components.runner
    if not isinstance(store, KVStore) or not isinstance(runner, ModelRunner):
        raise ValueError(_("This engine runs no model, so there is no attention to look at."))
    config = runner.model.config
    if not (0 <= layer < config.num_layers and 0 <= head < config.num_heads):
        raise IndexError(
            _("The model has layers 0 to {num_layers} and heads 0 to {num_heads}.").format(
                num_layers=config.num_layers - 1, num_heads=config.num_heads - 1
            )
        )
    state = engine.snapshot()
    address_of(state, seq_id, position)
    sequence = state.sequences[seq_id]
    tap = _run_again(runner, store, sequence, position, layer)
    kv_head = head // (config.num_heads // config.num_kv_heads)
    window = config.sliding_windows[layer]
    first = 0 if window is None else max(0, position - window + 1)
    scale = config.head_dim**-0.5
    keys, values, slots = _gather(store, sequence, first, position, layer, kv_head)
    scores = (keys @ tap.query[head].double() * scale).tolist()
    log_sum_exp = float(torch.tensor(scores, dtype=torch.float64).logsumexp(0))
    weights = [math.exp(score - log_sum_exp) for score in scores]
    tokens = [
        SeenToken(first + i, slots[i], sequence.pieces[first + i], scores[i], weights[i]) for i in range(len(slots))
    ]
    outline = store.backend.spec.attention_outline(store.layer(layer)[0], config.num_heads)
    return KernelView(
        seq_id=seq_id,
        position=position,
        layer=layer,
        head=head,
        kv_head=kv_head,
        scale=scale,
        query=tuple(tap.query[head].tolist()),
        visits=_visits(tokens, sequence, store.block_size),
        output=tuple((torch.tensor(weights, dtype=torch.float64) @ values).tolist()),
        log_sum_exp=log_sum_exp,
        kernel_output=tuple(tap.output[head].tolist()),
        kernel_log_sum_exp=float(tap.log_sum_exp[head]),
        tolerance=TOLERANCE[str(store.key_cache.dtype).removeprefix("torch.")],
        backend=store.backend.name,
        keys_at_once=outline.keys_at_once,
        source=kernel_lines(outline.places),
    )


class _Tap:
    """Stands in front of the attention kernel and keeps what one layer was asked and answered, on the CPU."""

    query: Tensor  # [num_heads, head_dim] float32
    output: Tensor  # [num_heads, head_dim] float32
    log_sum_exp: Tensor  # [num_heads] float32

    def __init__(self, kernel: PagedAttention, layer: int) -> None:
        self._kernel = kernel
        self._layers_to_go = layer

    def __call__(
        self, query: Tensor, key_cache: Tensor, value_cache: Tensor,
        block_table: Tensor, seq_lens: Tensor, query_start_loc: Tensor, *,
        scale: float, sliding_window: int | None = None, max_query_len: int | None = None,
    ) -> Tensor:  # fmt: skip
        """paged_attention (kernels/interface.py), which also keeps the first row of layer `layer`."""
        output, log_sum_exp = self._kernel(
            query, key_cache, value_cache, block_table, seq_lens, query_start_loc,
            scale=scale, sliding_window=sliding_window, max_query_len=max_query_len, return_lse=True,
        )  # fmt: skip
        if self._layers_to_go == 0:
            self.query, self.output = query[0].float().cpu(), output[0].float().cpu()
            self.log_sum_exp = log_sum_exp[0].cpu()
        self._layers_to_go -= 1
        return output


@torch.no_grad()
def _run_again(runner: ModelRunner, store: KVStore, sequence: SequenceState, position: int, layer: int) -> _Tap:
    """Compute one token a second time. Its keys and values are in the pool already, so nothing is written (slot -1)."""
    tap = _Tap(store.backend.paged_attention, layer)
    tapped = copy.copy(store)
    tapped.backend = replace(store.backend, paged_attention=tap)  # type: ignore[arg-type]  # fewer arguments
    device = runner.model.device

    def row(values: list[int], dtype: torch.dtype = torch.int64) -> Tensor:
        """[len(values)] on the device."""
        return torch.tensor(values, dtype=dtype, device=device)

    inputs = ModelInputs(
        input_ids=row([sequence.token_ids[position]]),
        positions=row([position]),
        slot_mapping=row([-1]),
        block_table=row(sequence.block_table, torch.int32)[None],
        seq_lens=row([position + 1], torch.int32),
        query_start_loc=row([0, 1], torch.int32),
        logits_indices=row([0]),
        max_query_len=1,
    )
    runner.model.forward(inputs, tapped)
    return tap


def _gather(
    store: KVStore, sequence: SequenceState, first: int, last: int, layer: int, kv_head: int
) -> tuple[Tensor, Tensor, list[int]]:
    """Keys and values [tokens, head_dim] float64 of positions first .. last, on the CPU, and their slots."""
    size = store.block_size
    slots = [sequence.block_table[p // size] * size + p % size for p in range(first, last + 1)]
    keys, values = (_rows(cache, slots, kv_head) for cache in store.layer(layer))
    return keys, values, slots


def _rows(cache: Tensor, slots: list[int], kv_head: int) -> Tensor:
    """[len(slots), head_dim] float64 on the CPU, from a cache [num_blocks, block_size, num_kv_heads, head_dim]."""
    rows = torch.tensor(slots, device=cache.device)
    return cache.flatten(0, 1).select(1, kv_head).index_select(0, rows).double().cpu()


def _visits(tokens: list[SeenToken], sequence: SequenceState, block_size: int) -> tuple[BlockVisit, ...]:
    """Online softmax, a block at a time (Milakov and Gimelshein 2018)."""
    visits, maximum, total = [], -math.inf, 0.0
    for logical_index in range(tokens[0].position // block_size, tokens[-1].position // block_size + 1):
        here = tuple(token for token in tokens if token.position // block_size == logical_index)
        new_maximum = max(maximum, *(token.score for token in here))
        shrink = math.exp(maximum - new_maximum)
        exponentials = tuple(math.exp(token.score - new_maximum) for token in here)
        total = total * shrink + sum(exponentials)
        maximum = new_maximum
        weight = sum(token.weight for token in here)
        block_id = sequence.block_table[logical_index]
        visits.append(BlockVisit(logical_index, block_id, here, exponentials, shrink, maximum, total, weight))
    return tuple(visits)
