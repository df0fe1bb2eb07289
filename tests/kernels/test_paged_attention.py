"""paged_attention of every backend against the dense float64 judge, over the grid that serious engines use."""

from dataclasses import replace

import pytest
import torch

from kernels.backend import Backend
from tests.kernels.cases import Shape, make_batch

Target = tuple[Backend, torch.device]

# Pairwise: every two values of different columns that could interact meet in some row.
GRID = [
    Shape((4, 4), 64, 1, None),
    Shape((8, 2), 64, 5, 64),
    Shape((9, 3), 64, 16, None),
    Shape((5, 1), 80, 16, 64),
    Shape((9, 3), 80, 1, 64),
    Shape((14, 2), 80, 5, None),
    Shape((7, 1), 96, 5, 64),
    Shape((4, 4), 96, 16, 64),
    Shape((8, 2), 96, 1, None),
    Shape((14, 2), 128, 1, 64),
    Shape((5, 1), 128, 5, None),
    Shape((8, 2), 128, 16, None),
    Shape((7, 1), 256, 16, None),
    Shape((9, 3), 256, 5, 64),
    Shape((4, 4), 256, 1, 64),
]
LENGTHS = ((0, 5), (75, 1), (61, 20), (0, 1))
"""A fresh prompt, a decode past the window, a chunk that straddles it, and a first token, in one call."""


def name_of(shape: Shape) -> str:
    heads = "x".join(map(str, shape.heads))
    return f"heads{heads}-dim{shape.head_dim}-block{shape.block_size}-window{shape.sliding_window}"


def check(target: Target, shape: Shape, tolerance: float = 1e-5) -> None:
    backend, device = target
    batch = make_batch(shape, device)
    out, lse = backend.paged_attention(**batch.tensors, **batch.options, return_lse=True)
    assert out.dtype == shape.dtype and lse.dtype == torch.float32
    torch.testing.assert_close(out.cpu().double(), batch.expected, rtol=tolerance, atol=tolerance)
    torch.testing.assert_close(lse.cpu().double(), batch.expected_lse, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("shape", GRID, ids=name_of)
def test_mixed_batch_equals_dense_float64(target: Target, shape: Shape) -> None:
    check(target, replace(shape, lengths=LENGTHS))


@pytest.mark.parametrize("shape", [GRID[2], GRID[3]], ids=name_of)
def test_pure_decode_equals_dense_float64(target: Target, shape: Shape) -> None:
    check(target, replace(shape, lengths=((0, 1), (16, 1), (130, 1), (46, 1))))


def test_long_context_decode_is_split_and_merged(target: Target) -> None:
    check(target, Shape((6, 2), 32, 16, lengths=((1500, 1),)))


def test_long_context_decode_under_a_window(target: Target) -> None:
    check(target, Shape((6, 2), 32, 16, 700, lengths=((1500, 1), (3, 1))))


@pytest.mark.parametrize("lengths", [((75, 1), (9, 1)), ((40, 9), (0, 6))], ids=["decode", "prefill"])
def test_soft_cap(target: Target, lengths: tuple[tuple[int, int], ...]) -> None:
    # A cap of 1 bends scores of size 1 visibly: without it this differs in the first digit.
    check(target, Shape((4, 2), 64, 16, 64, soft_cap=1.0, lengths=lengths))


@pytest.mark.parametrize("block_size", [1, 2, 3, 5, 16, 256])
def test_any_block_size(target: Target, block_size: int) -> None:
    """vllm 42510: advertised block sizes crashed."""
    check(target, Shape((4, 2), 64, block_size, lengths=((20, 6), (33, 1))))


@pytest.mark.parametrize("head_dim", [16, 80, 96, 112, 192])
def test_head_dim_that_is_small_or_no_power_of_two(target: Target, head_dim: int) -> None:
    """sglang 1281: a padded head_dim must be masked."""
    check(target, Shape((2, 2), head_dim, 4, lengths=((6, 3), (9, 1))))


@pytest.mark.parametrize("heads", [(7, 1), (14, 2), (5, 1), (24, 1), (71, 1)], ids=str)
@pytest.mark.parametrize("lengths", [((9, 1),), ((4, 3),)], ids=["decode", "prefill"])
def test_group_that_is_no_power_of_two(
    target: Target, heads: tuple[int, int], lengths: tuple[tuple[int, int], ...]
) -> None:
    """vllm 47248: padded heads of a group read the next KV head."""
    check(target, Shape(heads, 64, 4, lengths=lengths))


@pytest.mark.parametrize("lengths", [((4, 1),), ((0, 5),)], ids=["decode", "prefill"])
def test_unwritten_tail_of_nan_is_not_read(target: Target, lengths: tuple[tuple[int, int], ...]) -> None:
    """vllm 47305 and 936: 0 * NaN is NaN, so the loads must be masked and not only the scores."""
    check(target, Shape((2, 1), 64, 4, lengths=lengths))


@pytest.mark.parametrize(
    "dtype, tolerance", [(torch.bfloat16, 2e-2), (torch.float16, 3e-3)], ids=["bfloat16", "float16"]
)
@pytest.mark.parametrize("head_dim", [16, 64, 80, 112, 192], ids=lambda head_dim: f"dim{head_dim}")
def test_half_precision(target: Target, dtype: torch.dtype, tolerance: float, head_dim: int) -> None:
    backend, device = target
    if backend.name == "cpu" and dtype == torch.float16:
        pytest.skip("the cpu backend takes float32 and bfloat16")
    if backend.name == "triton" and device.type == "cpu" and dtype == torch.bfloat16:
        pytest.skip("Triton's interpreter multiplies bfloat16 as integers (triton issue 11584)")
    check(target, Shape((6, 2), head_dim, 5, lengths=((30, 1), (5, 7)), dtype=dtype), tolerance)


def test_padded_row_with_no_tokens_gives_zeros(target: Target) -> None:
    """A decode batch padded for a CUDA graph carries rows of seq_len 0."""
    backend, device = target
    batch = make_batch(Shape((4, 2), 64, 4, lengths=((9, 1), (5, 1))), device)
    batch.tensors["seq_lens"][1] = 0
    out, lse = backend.paged_attention(**batch.tensors, **batch.options, return_lse=True)
    torch.testing.assert_close(out[0].cpu().double(), batch.expected[0], rtol=1e-5, atol=1e-5)
    assert torch.equal(out[1].cpu(), torch.zeros(4, 64))
    assert torch.equal(lse[1].cpu(), torch.full((4,), -torch.inf))


def test_padded_row_beside_a_context_that_is_split(target: Target) -> None:
    """All splits of such a row are empty, and merging them must not divide by zero."""
    backend, device = target
    batch = make_batch(Shape((4, 2), 32, 16, lengths=((5, 1), (2100, 1))), device)
    batch.tensors["seq_lens"][0] = 0
    out, lse = backend.paged_attention(**batch.tensors, **batch.options, return_lse=True)
    torch.testing.assert_close(out[1].cpu().double(), batch.expected[1], rtol=1e-5, atol=1e-5)
    assert torch.equal(out[0].cpu(), torch.zeros(4, 32))
    assert torch.equal(lse[0].cpu(), torch.full((4,), -torch.inf))


@pytest.mark.parametrize("lengths", [((0, 0), (0, 2)), ((5, 0), (3, 2)), ((9, 3), (7, 0), (2, 0))], ids=str)
def test_a_sequence_without_query_tokens(target: Target, lengths: tuple[tuple[int, int], ...]) -> None:
    """As many tokens as sequences, and yet not all of them decode."""
    check(target, Shape((4, 2), 64, 4, lengths=lengths))


def test_a_batch_declared_decode_only(target: Target) -> None:
    backend, device = target
    batch = make_batch(Shape((4, 2), 64, 4, lengths=((9, 1), (5, 1))), device)
    told = backend.paged_attention(**batch.tensors, **batch.options, max_query_len=1)
    torch.testing.assert_close(told.cpu().double(), batch.expected, rtol=1e-5, atol=1e-5)


def test_without_lse_returns_the_output_alone(target: Target) -> None:
    backend, device = target
    batch = make_batch(Shape((4, 2), 64, 4, lengths=((9, 1), (5, 2))), device)
    out = backend.paged_attention(**batch.tensors, **batch.options)
    with_lse, _ = backend.paged_attention(**batch.tensors, **batch.options, return_lse=True)
    assert torch.equal(out, with_lse)


def test_results_do_not_depend_on_the_rest_of_the_batch(target: Target) -> None:
    """A sequence decoded alone and decoded among others: bit for bit, but for Triton, which splits by batch size."""
    backend, device = target
    batch = make_batch(Shape((4, 2), 64, 16, lengths=((700, 1), (9, 1), (77, 1))), device)
    together = backend.paged_attention(**batch.tensors, **batch.options)
    names = ("query", "block_table", "seq_lens")
    alone = {**batch.tensors, **{name: batch.tensors[name][:1] for name in names}}
    alone["query_start_loc"] = batch.tensors["query_start_loc"][:2]
    out = backend.paged_attention(**alone, **batch.options)
    tolerance = 1e-6 if backend.spec.splits_by_batch else 0.0
    torch.testing.assert_close(out[0], together[0], rtol=tolerance, atol=tolerance)
