"""Products over four and eight bits mean what their numbers mean."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from engine.model import linear, quantization
from engine.model.linear import (
    FEW_TOKENS,
    Bf16GemmLinear,
    DenseLinear,
    GroupQuantizedLinear,
    Linear,
    OneDnnLinear,
    dense_linear,
    has_int4_gemm,
)
from engine.model.quantization import (
    FEW_ROWS,
    ROWS_AT_A_TIME,
    EightBitGroups,
    EightBitLMHead,
    FourBitGroups,
    TokenCountDispatch,
)
from kernels.dequantize_int4.reference import dequantize_int4

ROWS, COLUMNS = 2 * ROWS_AT_A_TIME + 64, 96


def four_bit_matrix() -> FourBitGroups:
    generator = torch.Generator().manual_seed(3)
    nibbles = torch.randint(0, 256, (ROWS, COLUMNS // 2), generator=generator, dtype=torch.uint8)
    scale = torch.rand(ROWS, COLUMNS // 32, generator=generator).half() * 0.01
    return FourBitGroups(nibbles, scale, -7 * scale)


def eight_bit_matrix() -> EightBitGroups:
    generator = torch.Generator().manual_seed(4)
    quantised = torch.randint(-127, 128, (ROWS, COLUMNS), generator=generator, dtype=torch.int8)
    return EightBitGroups(quantised, torch.rand(ROWS, COLUMNS // 32, generator=generator).half() * 0.01)


def inputs(num_tokens: int = 4) -> torch.Tensor:
    return torch.randn(num_tokens, COLUMNS, generator=torch.Generator().manual_seed(5)).bfloat16().float()


def test_four_bits_one_by_one() -> None:
    """Element j of a group is the low half of byte j, element j + 16 the high half of byte j."""
    nibbles = torch.zeros(1, 16, dtype=torch.uint8)
    nibbles[0, 3] = 0x7A
    matrix = FourBitGroups(nibbles, torch.tensor([[0.5]]).half(), torch.tensor([[-2.0]]).half())
    weight = matrix.dequantised()[0]
    assert (weight[3], weight[19]) == (10 * 0.5 - 2.0, 7 * 0.5 - 2.0)
    assert (weight == -2.0).sum() == 30


@pytest.mark.parametrize("num_tokens", [1, FEW_TOKENS, FEW_TOKENS + 1])
def test_torch_s_four_bit_product(num_tokens: int) -> None:
    matrix, x = four_bit_matrix(), inputs(num_tokens)
    exact = x @ matrix.dequantised().T
    product = matrix.as_torch_linear()(x)
    assert product.dtype is torch.bfloat16 and product.shape == exact.shape
    assert (product.float() - exact).abs().max() < 0.01 * exact.abs().max()


def test_many_tokens_use_dequantized_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    """And without Numba they are not: the result is then that of few tokens, a few at a time."""
    product, x = four_bit_matrix().as_torch_linear(), inputs(FEW_TOKENS + 1)
    unpacked = F.linear(x.bfloat16(), dequantize_int4(product.nibbles, product.few.scale_and_zero))
    torch.testing.assert_close(product(x), unpacked, rtol=0.02, atol=0.002)
    monkeypatch.setattr(linear, "HAS_NUMBA", False)
    assert torch.equal(product(x), product.few(x))


@pytest.mark.parametrize("own_kernel", [True, False], ids=["own kernel", "torch"])
def test_the_products_of_this_processor(own_kernel: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if own_kernel and not has_int4_gemm():
        pytest.skip("needs Numba and a processor with AVX-512 VNNI")
    monkeypatch.setattr(quantization, "has_int4_gemm", lambda: own_kernel)
    four_bits, eight_bits = four_bit_matrix(), eight_bit_matrix()
    for matrix, product in ((four_bits, four_bits.as_linear()), (eight_bits, eight_bits.as_lm_head())):
        assert isinstance(product, GroupQuantizedLinear) == own_kernel
        for num_tokens in (1, FEW_ROWS + 1):
            x = inputs(num_tokens)
            exact = x @ matrix.dequantised().T
            assert (product(x).float() - exact).abs().max() < 1e-2 * exact.abs().max()


def test_torch_s_eight_bit_product() -> None:
    matrix, x = eight_bit_matrix(), inputs()
    exact = x @ matrix.dequantised().T
    assert (matrix.as_torch_linear()(x).float() - exact).abs().max() < 0.01 * exact.abs().max()


def test_packing_some_rows_at_a_time_is_packing_them_all() -> None:
    matrix = four_bit_matrix()
    whole = (
        matrix.dequantised() - matrix.minimum.float().repeat_interleave(32, 1)
    ) / matrix.scale.float().repeat_interleave(32, 1)
    packed = torch.ops.aten._convert_weight_to_int4pack_for_cpu(whole.round().int(), 1)
    assert torch.equal(matrix.as_torch_linear().few.packed, packed)


def test_embedding_rows_are_the_matrix_s_rows() -> None:
    matrix = eight_bit_matrix()
    token_ids = torch.tensor([700, 3, 3])
    assert torch.equal(matrix(token_ids), matrix.dequantised()[token_ids])


def test_rounding_to_bfloat16_happens_once() -> None:
    matrix = four_bit_matrix()
    assert torch.equal(matrix.dequantised(torch.bfloat16), matrix.dequantised().bfloat16())


@pytest.mark.parametrize("num_rows", [1, FEW_ROWS, FEW_ROWS + 1])
def test_lm_head_in_float32_breaks_bfloat16_ties(num_rows: int) -> None:
    """Rows that differ by one step in one element: their scores are closer than bfloat16 can tell near 20."""
    quantised = torch.full((64, 32), 100, dtype=torch.int8)
    quantised[:, 0] = torch.arange(64) // 2 + torch.arange(64) % 2 * 30  # the best token is the last, 63
    matrix = EightBitGroups(quantised, torch.full((64, 1), 0.0078125).half())
    x = torch.full((num_rows, 32), 0.75).bfloat16()
    head = EightBitLMHead(
        TokenCountDispatch(matrix.as_torch_linear(), DenseLinear(matrix.dequantised(torch.bfloat16))), matrix
    )
    tied = head.product(x)
    assert (tied[0] == tied[0].max()).sum() > 1
    scores = head(x)
    exact = x.float() @ matrix.dequantised().T
    assert scores.dtype is torch.float32
    assert scores.argmax(-1).tolist() == exact.argmax(-1).tolist() == [63] * num_rows
    near_the_top = exact >= exact.max() - 0.2
    assert torch.equal(scores[near_the_top], exact[near_the_top])


def test_bfloat16_weights_are_packed_where_that_is_possible_and_others_are_not(monkeypatch: pytest.MonkeyPatch) -> None:
    """Our own product first, then oneDNN's, which also adds a bias and takes any shape."""
    weight, bias, x = torch.randn(32, 32), torch.randn(32), torch.randn(3, 32)
    assert isinstance(dense_linear(weight), DenseLinear)
    tiled = dense_linear(weight.bfloat16())
    assert isinstance(tiled, Bf16GemmLinear) == linear.has_bf16_gemm()
    monkeypatch.setattr(linear, "has_bf16_gemm", lambda: False)
    for product, added in ((tiled, 0), (dense_linear(weight.bfloat16()), 0), (_with_bias(weight, bias), bias)):
        y = product(x.bfloat16())
        assert y.dtype is torch.bfloat16
        torch.testing.assert_close(y.float(), x @ weight.T + added, rtol=0.03, atol=0.1)


def _with_bias(weight: torch.Tensor, bias: torch.Tensor) -> Linear:
    product = dense_linear(weight.bfloat16(), bias.bfloat16())
    assert isinstance(product, OneDnnLinear) == torch.ops.mkldnn._is_mkldnn_bf16_supported()
    return product
