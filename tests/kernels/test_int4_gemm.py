"""The product over packed weights against its definition, for every split of the tokens and both widths."""

import pytest
import torch

from kernels.int4_gemm.reference import GROUP, int4_gemm, quantize_activations

pytest.importorskip("numba")
from kernels.int4_gemm import cpu
from kernels.int4_gemm.avx512 import is_supported

ROWS, GROUPS = 48, 3

needs_vnni = pytest.mark.skipif(not is_supported(), reason="needs a processor with AVX-512 VNNI")


def scales() -> tuple[torch.Tensor, torch.Tensor]:
    return torch.rand(ROWS, GROUPS).half() * 0.01, -torch.rand(ROWS, GROUPS).half() * 0.07


def test_a_group_of_zeros_stays_zeros_and_the_largest_becomes_the_largest() -> None:
    x = torch.zeros(1, 2 * GROUP)
    x[0, GROUP + 3], x[0, GROUP + 4] = -254.0, 3.0
    whole, scale = quantize_activations(x)
    assert whole[0, 0].eq(0).all() and scale[0, 0] == 0
    assert whole[0, 1, 3:5].tolist() == [-127, 2]  # 1.5 goes to its even neighbour
    assert scale[0, 1] == 2


@needs_vnni
@pytest.mark.parametrize("num_tokens", [0, 1, 2, 3, 7, 8, 15, 17, 300])
def test_four_bits(num_tokens: int) -> None:
    nibbles = torch.randint(0, 256, (ROWS, GROUPS * 16), dtype=torch.uint8)
    halves = nibbles.view(ROWS, GROUPS, 16)
    x, (scale, minimum) = torch.randn(num_tokens, GROUPS * GROUP), scales()
    expected = int4_gemm(x, torch.cat([halves & 15, halves >> 4], -1), scale, minimum)
    product = cpu.int4_gemm(x, cpu.pack_int4(nibbles, scale, minimum))
    torch.testing.assert_close(product, expected, rtol=1e-5, atol=1e-5)


@needs_vnni
@pytest.mark.parametrize("num_tokens", [1, 6, 16])
def test_eight_bits(num_tokens: int) -> None:
    """All 256 values of a byte occur: as a signed operand those above 127 would be negative."""
    q = torch.arange(ROWS * GROUPS * GROUP).view(ROWS, GROUPS, GROUP).to(torch.uint8)
    x, (scale, minimum) = torch.randn(num_tokens, GROUPS * GROUP), scales()
    product = cpu.int4_gemm(x, cpu.pack_int8(q.flatten(1), scale, minimum))
    torch.testing.assert_close(product, int4_gemm(x, q, scale, minimum), rtol=1e-5, atol=1e-3)


@needs_vnni
def test_a_token_s_result_does_not_depend_on_the_rest_of_the_batch() -> None:
    nibbles = torch.randint(0, 256, (ROWS, GROUPS * 16), dtype=torch.uint8)
    packed, x = cpu.pack_int4(nibbles, *scales()), torch.randn(31, GROUPS * GROUP)
    alone = torch.cat([cpu.int4_gemm(row[None], packed) for row in x])
    assert torch.equal(cpu.int4_gemm(x, packed), alone)


def test_rows_that_fill_no_tile_are_refused() -> None:
    with pytest.raises(ValueError, match="20 rows are not a multiple of 16"):
        cpu.pack_int4(torch.zeros(20, 16, dtype=torch.uint8), torch.zeros(20, 1).half(), torch.zeros(20, 1).half())
