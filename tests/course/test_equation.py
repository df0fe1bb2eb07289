"""Paged and contiguous keys and values: the same tokens, the same logits to rounding, another amount of memory."""

from __future__ import annotations

import pytest
import torch

from course.equation.dense import dense_attention, dense_logits
from course.equation.experiment import TOLERANCE, equation
from engine import EngineConfig
from engine.admission import RequestRefusedError
from kernels.paged_attention.reference import paged_attention
from tests.helpers.models import loaded

CONFIG = EngineConfig(
    model="tiny-random", block_size=4, num_blocks=32, max_model_len=64, attention_backend="reference", dtype="float32"
)


@pytest.mark.parametrize("window", [None, 3])
def test_dense_attention_is_attention(window: int | None) -> None:
    torch.manual_seed(0)
    query = torch.randn(4, 6, 8)
    keys, values = torch.randn(1, 12, 2, 8), torch.randn(1, 12, 2, 8)
    lens, starts, table = torch.tensor([9]), torch.tensor([0, 4]), torch.zeros(1, 1, dtype=torch.int32)
    dense = dense_attention(query, keys, values, table, lens, starts, scale=0.3, sliding_window=window)
    paged = paged_attention(query, keys, values, table, lens, starts, scale=0.3, sliding_window=window)
    torch.testing.assert_close(dense, paged, atol=1e-6, rtol=1e-5)


def test_paged_and_contiguous_give_the_same_logits_in_less_memory() -> None:
    report = equation(loaded("tiny-random"), CONFIG, ["The red fox", "A blue whale"], max_tokens=4)
    assert report.are_tokens_equal
    assert [len(p.paged_token_ids) for p in report.prompts] == [len(p.logit_differences) for p in report.prompts]
    assert 0 < report.largest_logit_difference < report.tolerance == TOLERANCE["float32"]
    assert (report.backend, report.dtype) == ("reference", "float32")
    # 2 (keys, values) * 2 layers * 2 heads * 16 numbers * 4 bytes; two reservations of max_model_len.
    assert report.contiguous_bytes == 2 * 64 * 512
    # A ends by itself one token sooner; in step 3 each of them has four blocks of 4.
    assert [len(p.prompt_token_ids) + len(p.paged_token_ids) - 1 for p in report.prompts] == [13, 15]
    assert report.paged_bytes == 2 * 16 * 512


def test_a_wrong_read_changes_the_logits() -> None:
    """The tolerance separates rounding from error: one key read from the wrong place moves logits further."""
    model = loaded("tiny-random").model
    right = dense_logits(model, [10, 11, 12, 13, 14], 4, 8)
    wrong = dense_logits(model, [10, 12, 11, 13, 14], 4, 8)
    assert (right - wrong).abs().max() > 100 * TOLERANCE["float32"]


def test_a_prompt_beyond_the_limit_is_refused() -> None:
    with pytest.raises(RequestRefusedError, match="max_model_len 64"):
        equation(loaded("tiny-random"), CONFIG, ["x" * 64], max_tokens=4)


@pytest.mark.embedded
@pytest.mark.parametrize("dtype", ["auto", "float32"])
def test_the_embedded_model_writes_the_same_text_in_both_layouts(dtype: str) -> None:
    """Token for token in float32; with activations in bytes, rounding may decide between two nearly as good ones."""
    config = EngineConfig(block_size=16, num_blocks=32, max_model_len=128)
    report = equation(loaded(dtype=dtype), config, ["The capital of France is", "Once upon a time"], max_tokens=8)
    assert "Paris" in report.prompts[0].text
    assert report.is_within_tolerance
    assert report.are_tokens_equal or dtype == "auto"
