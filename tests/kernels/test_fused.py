"""The fused operations of every backend against float64 arithmetic written out here."""

import pytest
import torch

from kernels.backend import Backend

Target = tuple[Backend, torch.device]

DTYPES = pytest.mark.parametrize(
    "dtype, tolerance", [(torch.float32, 1e-6), (torch.bfloat16, 8e-3)], ids=["float32", "bfloat16"]
)


def check(actual: torch.Tensor, expected: torch.Tensor, dtype: torch.dtype, tolerance: float) -> None:
    assert actual.dtype == dtype
    torch.testing.assert_close(actual.cpu().double(), expected, rtol=tolerance, atol=tolerance)


@DTYPES
def test_rms_norm(target: Target, dtype: torch.dtype, tolerance: float) -> None:
    backend, device = target
    hidden, weight = torch.randn(3, 100).to(dtype), torch.randn(100).to(dtype)
    exact = hidden.double()
    expected = exact / (exact.pow(2).mean(1, keepdim=True) + 1e-5).sqrt() * weight.double()
    check(backend.rms_norm(hidden.to(device), weight.to(device), 1e-5), expected, dtype, 4 * tolerance)


@DTYPES
def test_silu_mul(target: Target, dtype: torch.dtype, tolerance: float) -> None:
    backend, device = target
    # Gates far from zero are where a clumsy exponential overflows.
    gate_up = torch.cat([torch.linspace(-120, 120, 66).view(3, 22), torch.randn(3, 22)], 1).to(dtype)
    gate, up = gate_up.double().chunk(2, 1)
    check(backend.silu_mul(gate_up.to(device)), gate / (1 + (-gate).exp()) * up, dtype, 2 * tolerance)


@pytest.mark.parametrize("rows", [1, 3])
def test_best_token(target: Target, rows: int) -> None:
    backend, device = target
    scores = torch.randn(3, 1000)
    scores[:, 7] = torch.tensor([30.0, -1.0, 5.0])  # of the whole sum, of next to nothing of it, and twice there
    scores[2, 900] = 5.0
    scores[1] -= 500.0
    token_ids, log_sum_exp = backend.best_token(scores[:rows].to(device))
    exact = scores[:rows].double()
    assert token_ids.tolist() == [int(row.argmax()) for row in exact]
    assert token_ids.tolist()[2:] == [7] * (rows - 2)
    torch.testing.assert_close(log_sum_exp.cpu().double(), exact.logsumexp(1), rtol=1e-6, atol=1e-5)


@DTYPES
@pytest.mark.parametrize("heads, head_dim", [((4, 4), 64), ((7, 1), 80), ((9, 3), 96)])
def test_rotary_write_kv(
    target: Target, heads: tuple[int, int], head_dim: int, dtype: torch.dtype, tolerance: float
) -> None:
    backend, device = target
    num_heads, num_kv_heads = heads
    qkv = torch.randn(3, num_heads + 2 * num_kv_heads, head_dim).to(dtype)
    angles = torch.rand(3, head_dim // 2) * 100
    caches = [torch.full((4, 5, num_kv_heads, head_dim), 7.0, dtype=dtype, device=device) for _ in range(2)]
    slots = [13, -1, 2]
    query = backend.rotary_write_kv(
        qkv.to(device), angles.cos().to(device), angles.sin().to(device), *caches, torch.tensor(slots, device=device)
    )
    # As complex numbers: the pair (i, i + head_dim / 2) is turned by its angle.
    pairs = torch.complex(qkv[..., : head_dim // 2].double(), qkv[..., head_dim // 2 :].double())
    pairs = pairs * torch.complex(angles.cos().double(), angles.sin().double())[:, None]
    turned = torch.cat([pairs.real, pairs.imag], -1)
    check(query, turned[:, :num_heads], dtype, 4 * tolerance)
    expected = [torch.full((20, num_kv_heads, head_dim), 7.0, dtype=torch.float64) for _ in range(2)]
    for token, slot in ((0, 13), (2, 2)):
        expected[0][slot] = turned[token, num_heads : num_heads + num_kv_heads]
        expected[1][slot] = qkv[token, num_heads + num_kv_heads :].double()
    for cache, wanted in zip(caches, expected, strict=True):
        check(cache.view(20, num_kv_heads, head_dim), wanted, dtype, 4 * tolerance)


def test_bfloat16_is_rounded_to_nearest_with_ties_to_even() -> None:
    """The Numba twins round bits themselves; PyTorch's rounding is the judge, bit for bit."""
    pytest.importorskip("numba")
    from kernels.rotary_write_kv.cpu import rotary_write_kv

    halfway = torch.tensor([0x3F808000, 0x3F818000, 0x3F808001, 0x3F817FFF], dtype=torch.int32).view(torch.float32)
    qkv = torch.zeros(1, 3, 4)
    qkv[0, 2] = halfway
    caches = [torch.zeros(1, 1, 1, 4, dtype=torch.bfloat16) for _ in range(2)]
    rotary_write_kv(qkv, torch.ones(1, 2), torch.zeros(1, 2), *caches, torch.tensor([0]))
    assert torch.equal(caches[1].flatten(), halfway.bfloat16())
