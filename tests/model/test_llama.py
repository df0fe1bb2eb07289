"""The forward pass over a paged cache is the plain forward pass, however it is cut up."""

from __future__ import annotations

import pytest
import torch

from benchmarks.embedded_model import in_transformers
from engine.model.weights.tiny import tiny_weights
from engine.runner import ModelRunner
from tests.helpers.models import Item, Tokens, loaded, new_kv_store, paged_logits
from tests.helpers.models import transformers_logits as logits_of

TEXT = list(b"A block table maps logical blocks to physical ones.")


def greedy(backend: str, block_size: int, steps: int) -> list[int]:
    """Continue TEXT on the tiny model, one token a step, through blocks handed out backwards."""
    model = loaded("tiny-random")
    store = new_kv_store(model, backend=backend, block_size=block_size, num_blocks=100)
    runner = ModelRunner(model.model, store)
    tokens, start = Tokens(list(TEXT)), 0
    for _ in range(steps):
        item = Item(tokens, start, len(tokens.token_ids) - start, list(reversed(range(100))))
        start = len(tokens.token_ids)
        tokens.token_ids.append(int(runner.run([item]).argmax()))
    return tokens.token_ids[len(TEXT) :]


def test_tiny_random_is_the_same_everywhere() -> None:
    first, second = tiny_weights(), tiny_weights()
    assert all(torch.equal(first[name], second[name]) for name in first)
    assert bytes(greedy("reference", 4, 24)) == b'oDG1E=p=}w$Y"E==}`~U]LaC'


def test_tiny_random_writes_letters_not_broken_characters() -> None:
    assert all(32 <= token < 127 for token in greedy("reference", 4, 40))


@pytest.mark.parametrize("block_size", [1, 3, 16])
@pytest.mark.parametrize("backend", ["reference", "cpu"])
def test_tokens_do_not_depend_on_block_size_or_backend(backend: str, block_size: int) -> None:
    assert greedy(backend, block_size, 12) == greedy("reference", 4, 12)


@pytest.mark.parametrize("chunks", [[1] * 51, [7] * 7 + [2], [50, 1]])
def test_chunks_give_the_logits_of_one_pass(chunks: list[int]) -> None:
    model = loaded("tiny-random")
    whole = paged_logits(model, TEXT, [51])
    torch.testing.assert_close(paged_logits(model, TEXT, chunks)[-1:], whole, atol=1e-5, rtol=0)


def test_unwritten_slots_are_never_read() -> None:
    model = loaded("tiny-random")
    store = new_kv_store(model, block_size=16)
    store.key_cache.fill_(torch.nan)
    store.value_cache.fill_(torch.nan)
    logits = ModelRunner(model.model, store).run([Item(Tokens(TEXT), 0, 51, [9, 3, 60, 11])])
    torch.testing.assert_close(logits, paged_logits(model, TEXT, [51]), atol=1e-5, rtol=0)


def test_keys_and_values_may_be_kept_in_bfloat16() -> None:
    model = loaded("tiny-random")
    exact = paged_logits(model, TEXT, [51])
    halved = paged_logits(model, TEXT, [51], dtype=torch.bfloat16)
    assert 0 < (halved - exact).abs().max() < 0.05 * exact.abs().max()


PROMPTS = ["The red fox", "In 2024, 12345 visitors came to the Café. \t They ordered", "日本語のテキスト、それから"]


@pytest.mark.embedded
@pytest.mark.parametrize("prompt", PROMPTS)
def test_embedded_logits_equal_transformers(prompt: str) -> None:
    model = loaded()
    token_ids = model.tokenizer.encode(prompt)
    expected = logits_of(in_transformers(), token_ids)
    ours = paged_logits(model, token_ids, [1] * len(token_ids), backend="auto", block_size=5)
    torch.testing.assert_close(ours, expected, atol=1e-3, rtol=0)  # logits reach 24; float32 holds 7 digits of that
    assert torch.equal(ours.argmax(-1), expected.argmax(-1))
