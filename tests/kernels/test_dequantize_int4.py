"""Unpacked weights are the numbers that four bits, a scale and a zero stand for."""

import pytest
import torch

from kernels.dequantize_int4 import reference

ROWS, GROUPS = 10, 3


def weights() -> tuple[torch.Tensor, torch.Tensor]:
    nibbles = torch.randint(0, 256, (ROWS, GROUPS * 16), dtype=torch.uint8)
    return nibbles, torch.randn(GROUPS, ROWS, 2).bfloat16()


def test_dequantization_equals_a_scalar_loop() -> None:
    nibbles, scale_and_zero = weights()
    unpacked = reference.dequantize_int4(nibbles, scale_and_zero)
    assert unpacked.shape == (ROWS, GROUPS * 32) and unpacked.dtype is torch.bfloat16
    for row, column in ((0, 0), (3, 17), (9, 95), (4, 40)):
        group, place = divmod(column, 32)
        byte = int(nibbles[row, group * 16 + place % 16])
        q = byte & 15 if place < 16 else byte >> 4
        scale, zero = scale_and_zero[group, row].double()
        assert unpacked[row, column] == ((q - 8) * scale + zero).bfloat16()


def test_the_cpu_implementation_equals_the_reference() -> None:
    """A fused multiply-add rounds once where PyTorch rounds twice: at most the last bit of bfloat16 differs."""
    cpu = pytest.importorskip("kernels.dequantize_int4.cpu")
    nibbles, scale_and_zero = weights()
    expected = reference.dequantize_int4(nibbles, scale_and_zero)
    torch.testing.assert_close(cpu.dequantize_int4(nibbles, scale_and_zero), expected, rtol=2**-7, atol=1e-6)
