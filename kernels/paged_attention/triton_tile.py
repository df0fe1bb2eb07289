"""The inner loop that prefill and decode share: online softmax over tiles of paged keys and values.

Online softmax: Milakov and Gimelshein, 2018; over tiles: FlashAttention, Dao and others, 2022, algorithm 1.
Exponentials are taken in base 2, which is the instruction that GPUs have; the factor log2(e) goes into the scores.
"""

import triton
import triton.language as tl

# Triton reads the types of its functions' arguments at run time; its constants are upper case.
# mypy: disable-error-code="no-untyped-def,untyped-decorator"
# ruff: noqa: N803

LOG2_E: tl.constexpr = tl.constexpr(1.4426950408889634)
LN_2: tl.constexpr = tl.constexpr(0.6931471805599453)


@triton.jit
def attend_keys(
    query,  # [ROWS, DIM] queries that share one KV head, in the cache's dtype
    position,  # [ROWS] int32, where in its sequence each row's query sits
    key_cache_ptr,  # [num_blocks, BLOCK_SIZE, NUM_KV_HEADS, HEAD_DIM]
    value_cache_ptr,  # [num_blocks, BLOCK_SIZE, NUM_KV_HEADS, HEAD_DIM]
    block_ids_ptr,  # [max_blocks_per_seq] int32, this sequence's row of the block table
    first_key,
    end_key,  # positions first_key .. end_key - 1 are read, and no other
    kv_head,
    scale,
    soft_cap,  # float, or None
    BLOCK_SIZE: tl.constexpr,
    NUM_KV_HEADS: tl.constexpr,
    HEAD_DIM: tl.constexpr,
    WINDOW: tl.constexpr,  # 0 for none
    ROWS: tl.constexpr,
    KEYS: tl.constexpr,
    DIM: tl.constexpr,  # HEAD_DIM padded to a power of two
    PRECISION: tl.constexpr,  # of float32 products; narrower types ignore it
):
    """The rows' attention over a range of keys: output [ROWS, DIM] float32 and log-sum-exp [ROWS] float32."""
    maximum = tl.full([ROWS], float("-inf"), tl.float32)
    total = tl.zeros([ROWS], tl.float32)
    out = tl.zeros([ROWS, DIM], tl.float32)
    dim = tl.arange(0, DIM)
    for start in range(first_key, end_key, KEYS):
        key = start + tl.arange(0, KEYS)
        in_range = key < end_key
        block = tl.load(block_ids_ptr + key // BLOCK_SIZE, mask=in_range, other=0)
        # int64 before the first product: a block's offset in a large cache does not fit in 32 bits.
        slot = block.to(tl.int64) * BLOCK_SIZE + key % BLOCK_SIZE
        element = (slot * NUM_KV_HEADS + kv_head)[:, None] * HEAD_DIM + dim[None, :]
        # The loads are masked, not only the scores: an unwritten slot may hold NaN, and 0 * NaN is NaN.
        loaded = in_range[:, None] & (dim < HEAD_DIM)[None, :]
        keys = tl.load(key_cache_ptr + element, mask=loaded, other=0.0)
        values = tl.load(value_cache_ptr + element, mask=loaded, other=0.0)

        scores = tl.dot(query, keys.T, input_precision=PRECISION) * scale
        if soft_cap is not None:
            scores = soft_cap * tanh(scores / soft_cap)
        visible = in_range[None, :] & (key[None, :] <= position[:, None])
        if WINDOW > 0:
            visible = visible & (key[None, :] > position[:, None] - WINDOW)
        scores = tl.where(visible, scores * LOG2_E, float("-inf"))

        new_maximum = tl.maximum(maximum, tl.max(scores, 1))
        # A row that has seen no key yet keeps a maximum of -inf; subtracting 0 instead keeps its weights at 0.
        reference = tl.where(new_maximum == float("-inf"), 0.0, new_maximum)
        weights = tl.exp2(scores - reference[:, None])
        shrink = tl.exp2(maximum - reference)
        total = total * shrink + tl.sum(weights, 1)
        out = tl.dot(weights.to(values.dtype), values, out * shrink[:, None], input_precision=PRECISION)
        maximum = new_maximum
    # A row without keys has total 0 and maximum -inf: its output is 0 and its log-sum-exp -inf.
    total = tl.where(total > 0, total, 1.0)
    return out / total[:, None], maximum * LN_2 + tl.log(total)


@triton.jit
def tanh(x):
    """Hyperbolic tangent by way of exp2, which saturates to +-1 where exp2 overflows."""
    return 1.0 - 2.0 / (1.0 + tl.exp2(x * (2.0 * LOG2_E)))
