"""Unpacked weights are the numbers that four bits, a scale and a zero stand for."""

import torch

from kernels.unpack_four_bits import cpu, reference

ROWS, GROUPS = 10, 3


def weights() -> tuple[torch.Tensor, torch.Tensor]:
    nibbles = torch.randint(0, 256, (ROWS, GROUPS * 16), dtype=torch.uint8)
    return nibbles, torch.randn(GROUPS, ROWS, 2).bfloat16()


def test_one_by_one() -> None:
    nibbles, scale_and_zero = weights()
    unpacked = reference.unpack_four_bits(nibbles, scale_and_zero)
    assert unpacked.shape == (ROWS, GROUPS * 32) and unpacked.dtype is torch.bfloat16
    for row, column in ((0, 0), (3, 17), (9, 95), (4, 40)):
        group, place = divmod(column, 32)
        byte = int(nibbles[row, group * 16 + place % 16])
        q = byte & 15 if place < 16 else byte >> 4
        scale, zero = scale_and_zero[group, row].double()
        assert unpacked[row, column] == ((q - 8) * scale + zero).bfloat16()


def test_the_cpu_twin() -> None:
    """A fused multiply-add rounds once where PyTorch rounds twice: at most the last bit of bfloat16 differs."""
    nibbles, scale_and_zero = weights()
    expected = reference.unpack_four_bits(nibbles, scale_and_zero)
    torch.testing.assert_close(cpu.unpack_four_bits(nibbles, scale_and_zero), expected, rtol=2**-7, atol=1e-6)
