"""argmax_logsumexp on a GPU, in Triton (interface: kernels.interface.ArgmaxLogsumexp). One program serves one row."""

import torch
import triton
import triton.language as tl
from torch import Tensor

# mypy: disable-error-code="no-untyped-def,untyped-decorator"
# ruff: noqa: N803


def argmax_logsumexp(logits: Tensor) -> Tensor:
    """See kernels.interface.ArgmaxLogsumexp."""
    rows, vocab_size = logits.shape
    out = torch.empty(rows, 3, dtype=torch.float64, device=logits.device)
    if rows:
        argmax_logsumexp_kernel[(rows,)](logits.contiguous(), out, VOCAB_SIZE=vocab_size, **tiles(vocab_size))
    return out


def tiles(vocab_size: int) -> dict[str, int]:
    """Each thread keeps the best, its place and a sum for the sixteen columns of a tile that are its own."""
    tile = min(triton.next_power_of_2(vocab_size), 8192)
    return {"TILE": tile, "num_warps": max(tile // 512, 1)}


@triton.jit
def argmax_logsumexp_kernel(
    logits_ptr,  # [rows, VOCAB_SIZE] float32
    out_ptr,  # [rows, 3] float64: token id, its logit, log-sum-exp
    VOCAB_SIZE: tl.constexpr,
    TILE: tl.constexpr,
):
    """Grid: (rows,). One pass: the sum of each column of tiles is rescaled when its maximum grows."""
    row = tl.program_id(0).to(tl.int64)
    column = tl.arange(0, TILE)
    best = tl.full([TILE], float("-inf"), tl.float32)
    best_at = column
    total = tl.zeros([TILE], tl.float32)
    for start in range(0, VOCAB_SIZE, TILE):
        in_row = start + column < VOCAB_SIZE
        logit = tl.load(logits_ptr + row * VOCAB_SIZE + start + column, mask=in_row, other=float("-inf"))
        best_at = tl.where(logit > best, start + column, best_at)
        higher = tl.maximum(best, logit)
        # Nothing but minus infinity so far: the difference would be no number.
        shift = tl.where(higher == float("-inf"), 0.0, higher)
        total = total * tl.exp(best - shift) + tl.exp(logit - shift)
        best = higher
    maximum = tl.max(best, 0)
    token_id = tl.min(tl.where(best == maximum, best_at, VOCAB_SIZE - 1), 0)
    shift = tl.where(maximum == float("-inf"), 0.0, maximum)
    log_sum_exp = shift + tl.log(tl.sum(total * tl.exp(best - shift), 0))
    tl.store(out_ptr + 3 * row, token_id.to(tl.float64))
    tl.store(out_ptr + 3 * row + 1, maximum.to(tl.float64))
    tl.store(out_ptr + 3 * row + 2, log_sum_exp.to(tl.float64))
