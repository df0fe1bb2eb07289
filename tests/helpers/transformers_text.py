"""What transformers' own `generate` writes, in float32, for prompts of mixed length."""

from __future__ import annotations

from functools import cache

import torch

from benchmarks.embedded_model import in_transformers
from tests.helpers.models import loaded

PROMPTS = (
    "The red fox",
    "Hi",
    "Once upon a time, in a village by the sea, there lived a",
    "2 + 2 =",
    "The capital of France is",
    "def fibonacci(n):",
    "Photosynthesis is the process by which",
    "Rain started just as the match reached its final over and",
    "My favourite colour is",
    "In 1969,",
    "A recipe for bread: take flour, water, salt and yeast. First,",
    "Water boils at",
    "Dear Sir or Madam,",
    "The three primary colours are red, blue and",
    "To be, or not to be, that is the",
    "Monday, Tuesday, Wednesday,",
    "The crowd crossed the quiet field while the sun went down behind the hills, and nobody said a word until",
    "¿Cómo se dice",
    "こんにちは",
    "A block table maps each logical block of a sequence to a physical block, much like the page table of an "
    "operating system maps virtual pages to frames of memory, which means that",
)
NUM_TOKENS = 64


def prompt_token_ids() -> list[list[int]]:
    tokenizer = loaded().tokenizer
    return [tokenizer.encode(prompt) for prompt in PROMPTS]


@cache
def greedy_continuations() -> tuple[tuple[int, ...], ...]:
    """`generate(do_sample=False)` of all prompts, 64 tokens each, one left-padded batch."""
    prompts = prompt_token_ids()
    width = max(map(len, prompts))
    pad = 0
    ids = torch.tensor([[pad] * (width - len(p)) + p for p in prompts])
    mask = torch.tensor([[0] * (width - len(p)) + [1] * len(p) for p in prompts])
    written = in_transformers().generate(
        ids,
        attention_mask=mask,
        do_sample=False,
        max_new_tokens=NUM_TOKENS,
        min_new_tokens=NUM_TOKENS,
        eos_token_id=None,
        pad_token_id=pad,
    )
    return tuple(tuple(row[width:].tolist()) for row in written)


def beam_continuation(token_ids: list[int], beam_width: int, num_tokens: int) -> tuple[int, ...]:
    """`generate(num_beams=beam_width)` with its defaults: the best beam, its end token included."""
    written = in_transformers().generate(
        torch.tensor([token_ids]),
        num_beams=beam_width,
        do_sample=False,
        max_new_tokens=num_tokens,
        eos_token_id=list(loaded().tokenizer.eos_token_ids),
        pad_token_id=0,
    )
    return tuple(written[0, len(token_ids) :].tolist())
