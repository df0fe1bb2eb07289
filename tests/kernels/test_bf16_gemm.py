"""The product over tiles of bfloat16 against its definition, for every split of the tokens."""

import pytest
import torch

from kernels.bf16_gemm.reference import bf16_gemm

pytest.importorskip("numba")
from kernels.bf16_gemm import cpu
from kernels.bf16_gemm.avx512 import has_instruction

ROWS, COLUMNS = 96, 70

needs_bf16 = pytest.mark.skipif(not has_instruction(), reason="needs a processor with AVX-512 BF16")


@needs_bf16
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("num_tokens", [0, 1, 2, 3, 7, 8, 15, 17, 4000])
def test_product(num_tokens: int, dtype: torch.dtype) -> None:
    """4,000 tokens are more than one panel."""
    x, weight = torch.randn(num_tokens, COLUMNS).to(dtype), torch.randn(ROWS, COLUMNS)
    product = cpu.bf16_gemm(x, cpu.pack_tiles(weight))
    torch.testing.assert_close(product, bf16_gemm(x, weight), rtol=1e-5, atol=2e-5)


@needs_bf16
def test_a_token_s_result_does_not_depend_on_the_rest_of_the_batch() -> None:
    packed, x = cpu.pack_tiles(torch.randn(ROWS, COLUMNS)), torch.randn(31, COLUMNS)
    alone = torch.cat([cpu.bf16_gemm(row[None], packed) for row in x])
    assert torch.equal(cpu.bf16_gemm(x, packed), alone)


@pytest.mark.parametrize("rows, columns", [(20, 4), (16, 3)])
def test_a_matrix_that_fills_no_tiles_is_refused(rows: int, columns: int) -> None:
    with pytest.raises(ValueError, match=f"{rows} rows of {columns} columns do not fill"):
        cpu.pack_tiles(torch.zeros(rows, columns))
