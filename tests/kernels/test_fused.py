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


def between_nan(rows: torch.Tensor) -> torch.Tensor:
    """The same numbers in the middle of NaN: what is read outside of them shows in the result."""
    wider = torch.full((len(rows) + 2, rows.shape[1]), torch.nan, dtype=rows.dtype, device=rows.device)
    wider[1:-1] = rows
    return wider[1:-1]


@DTYPES
@pytest.mark.parametrize("num_tokens, size", [(1, 576), (3, 100), (70, 7), (2, 1)])
def test_add_rms_norm(target: Target, num_tokens: int, size: int, dtype: torch.dtype, tolerance: float) -> None:
    backend, device = target
    x, residual = torch.randn(num_tokens, size).to(dtype), (100 * torch.randn(num_tokens, size)).to(dtype)
    weight = torch.randn(size).to(dtype)
    norm, total = backend.add_rms_norm(
        between_nan(x.to(device)), between_nan(residual.to(device)), between_nan(weight.to(device)[None])[0], 1e-5
    )
    check(total, residual.double() + x.double(), dtype, tolerance)
    if (backend.name, device.type) != ("triton", "cpu"):  # the interpreter cuts bfloat16 off
        assert torch.equal(total.cpu(), residual + x), "rounded once, as PyTorch rounds it"
    exact = total.cpu().double()
    expected = exact / (exact.pow(2).mean(1, keepdim=True) + 1e-5).sqrt() * weight.double()
    check(norm, expected, dtype, 4 * tolerance)


def test_add_rms_norm_of_two_types_takes_the_wider_one(target: Target) -> None:
    """A product over four-bit weights gives bfloat16 where the hidden states are float32, or the other way round."""
    backend, device = target
    narrow, wide = torch.randn(3, 100).bfloat16().to(device), torch.randn(3, 100).to(device)
    weight = torch.randn(100).to(device)
    for x, residual in ((narrow, wide), (wide, narrow)):
        norm, total = backend.add_rms_norm(x, residual, weight, 1e-5)
        assert norm.dtype == total.dtype == torch.float32
        assert torch.equal(total, narrow.float() + wide)


@DTYPES
@pytest.mark.parametrize("num_tokens, size", [(3, 44), (1, 1536), (5, 1025)])
def test_silu_mul(target: Target, num_tokens: int, size: int, dtype: torch.dtype, tolerance: float) -> None:
    backend, device = target
    # Gates far from zero are where a clumsy exponential overflows.
    gate = torch.linspace(-120, 120, num_tokens * size).view(num_tokens, size)
    gate_up = torch.cat([gate, torch.randn(num_tokens, size)], 1).to(dtype)
    gate, up = gate_up.double().chunk(2, 1)
    found = backend.silu_mul(between_nan(gate_up.to(device)))
    check(found, gate / (1 + (-gate).exp()) * up, dtype, 2 * tolerance)


def test_zero_tokens_are_allowed(target: Target) -> None:
    backend, device = target
    empty, weight = torch.empty(0, 8, device=device), torch.ones(8, device=device)
    assert [result.shape for result in backend.add_rms_norm(empty, empty, weight, 1e-5)] == [(0, 8), (0, 8)]
    assert backend.silu_mul(empty).shape == (0, 4)
    assert backend.argmax_logsumexp(empty).shape == (0, 3)


@pytest.mark.parametrize("rows", [1, 3])
@pytest.mark.parametrize("vocab_size", [1000, 20_011])
def test_argmax_logsumexp(target: Target, rows: int, vocab_size: int) -> None:
    backend, device = target
    scores = torch.randn(3, vocab_size)
    scores[:, 7] = torch.tensor([30.0, -1.0, 9.0])  # of the whole sum, of next to nothing of it, and twice there
    scores[2, vocab_size - 1] = 9.0
    scores[1] -= 500.0
    scores[:, 3] = -torch.inf
    found = backend.argmax_logsumexp(between_nan(scores[:rows].to(device))).cpu()
    exact = scores[:rows].double()
    assert found.dtype == torch.float64
    assert found[:, 0].tolist() == [int(row.argmax()) for row in exact]
    assert found[2:, 0].tolist() == [7] * (rows - 2)
    assert found[:, 1].tolist() == exact.max(1).values.tolist()
    torch.testing.assert_close(found[:, 2], exact.logsumexp(1), rtol=1e-6, atol=1e-5)


@pytest.mark.parametrize("bad", [torch.nan, torch.inf, -torch.inf])
def test_argmax_logsumexp_of_non_finite_scores_is_not_finite(target: Target, bad: float) -> None:
    """A row with NaN or +inf, or with nothing but -inf: some token of the row, and no finite log-probability."""
    backend, device = target
    scores = torch.randn(2, 5000)
    scores[0, 4321] = bad
    if bad == -torch.inf:
        scores[0] = bad
    found = backend.argmax_logsumexp(scores.to(device)).cpu()
    assert not (found[0, 1] - found[0, 2]).isfinite()
    assert 0 <= found[0, 0] < 5000
    assert (found[1, 1] - found[1, 2]).isfinite(), "its neighbour is not harmed"


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
    query = backend.rotary_write_kv(  # type: ignore[call-arg]
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


def not_turned(num_tokens: int, head_dim: int, device: torch.device) -> tuple[torch.Tensor, torch.Tensor]:
    """Cosines and sines of no rotation: keys are stored as they are."""
    return torch.ones(num_tokens, head_dim // 2, device=device), torch.zeros(num_tokens, head_dim // 2, device=device)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=["float32", "bfloat16"])
@pytest.mark.parametrize("block_size, head_dim", [(1, 64), (5, 80), (16, 96)])
def test_each_token_is_written_to_its_slot(target: Target, block_size: int, head_dim: int, dtype: torch.dtype) -> None:
    backend, device = target
    qkv = torch.randn(4, 2 + 3 + 3, head_dim).to(dtype)
    caches = [torch.full((20, block_size, 3, head_dim), -1.0, dtype=dtype) for _ in range(2)]
    expected = [cache.clone() for cache in caches]
    slots = [13, 2, 19, 7]
    for token, slot in enumerate(slots):
        for cache, rows in zip(expected, (qkv[:, 2:5], qkv[:, 5:]), strict=True):
            cache[slot // block_size, slot % block_size] = rows[token]
    on_device = [cache.to(device) for cache in caches]
    query = backend.rotary_write_kv(
        qkv.to(device), *not_turned(4, head_dim, device), on_device[0], on_device[1], torch.tensor(slots, device=device)
    )
    assert torch.equal(query.cpu(), qkv[:, :2])
    for cache, wanted in zip(on_device, expected, strict=True):
        assert torch.equal(cache.cpu(), wanted)


def test_slot_minus_one_is_skipped(target: Target) -> None:
    """vllm 43810: slot -1 wrote the last slot."""
    backend, device = target
    qkv = torch.ones(2, 3, 64, device=device)
    qkv[:, 2] = 2.0
    key_cache, value_cache = (torch.zeros(2, 4, 1, 64, device=device) for _ in range(2))
    slots = torch.tensor([3, -1], device=device)
    backend.rotary_write_kv(qkv, *not_turned(2, 64, device), key_cache, value_cache, slots)
    assert key_cache.sum() == 64 and value_cache.sum() == 128
    assert torch.equal(key_cache[0, 3], qkv[0, 1:2]) and torch.equal(value_cache[0, 3], qkv[0, 2:])


def test_qkv_may_be_a_slice_of_a_wider_tensor(target: Target) -> None:
    """Its token rows lie apart in memory."""
    backend, device = target
    qkv = torch.randn(3, 10, 64, device=device)[:, 4:]
    key_cache, value_cache = (torch.zeros(2, 4, 2, 64, device=device) for _ in range(2))
    slots = torch.tensor([0, 5, 6], device=device)
    backend.rotary_write_kv(qkv, *not_turned(3, 64, device), key_cache, value_cache, slots)
    assert torch.equal(key_cache.view(8, 2, 64)[[0, 5, 6]], qkv[:, 2:4])
    assert torch.equal(value_cache.view(8, 2, 64)[[0, 5, 6]], qkv[:, 4:])


def test_bfloat16_is_rounded_to_nearest_with_ties_to_even() -> None:
    """The Numba implementations round bits themselves; PyTorch's rounding is the judge, bit for bit."""
    pytest.importorskip("numba")
    from kernels.rotary_write_kv.cpu import rotary_write_kv

    halfway = torch.tensor([0x3F808000, 0x3F818000, 0x3F808001, 0x3F817FFF], dtype=torch.int32).view(torch.float32)
    qkv = torch.zeros(1, 3, 4)
    qkv[0, 2] = halfway
    caches = [torch.zeros(1, 1, 1, 4, dtype=torch.bfloat16) for _ in range(2)]
    rotary_write_kv(qkv, torch.ones(1, 2), torch.zeros(1, 2), *caches, torch.tensor([0]))  # type: ignore[call-arg]
    assert torch.equal(caches[1].flatten(), halfway.bfloat16())
