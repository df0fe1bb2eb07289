"""A run in an address: it comes back as it was, and nothing foreign gets through."""

from __future__ import annotations

import base64
import json
import random
import zlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.config import EngineConfig
from engine.sampling_params import SamplingParams
from views.live.config import live_config
from views.live.recipe import LONGEST_TEXT, MAX_COMMANDS, MAX_STEPS, Recipe, RecipeError
from views.server.commands import AbortRequest, AddRequest, Command, ForkRequest

CONFIG = live_config("tiny-random", 4, 32, True, "recompute")
PARAMS = SamplingParams(temperature=0.7, max_tokens=24, n=2, seed=7, ignore_eos=True)
COMMANDS: tuple[Command, ...] = (
    AddRequest(0, "日本語 👩‍👩‍👧 \t<b>**x**</b> $5", PARAMS),
    AddRequest(2, "again", PARAMS, as_chat=True),
    ForkRequest(3, "A", 8),
    AbortRequest(5, "B"),
)


def packed(document: object) -> str:
    return base64.urlsafe_b64encode(zlib.compress(json.dumps(document).encode())).rstrip(b"=").decode()


def document() -> list[object]:
    text = Recipe(CONFIG, COMMANDS, 9).to_text()
    assert text is not None
    loaded: list[object] = json.loads(zlib.decompress(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))))
    return loaded


def test_a_run_is_restored_exactly() -> None:
    recipe = Recipe(CONFIG, COMMANDS, 9)
    text = recipe.to_text()
    assert text is not None
    assert Recipe.from_text(text) == recipe


@given(
    block_size=st.integers(1, 256),
    num_blocks=st.integers(1, 512),
    swaps=st.booleans(),
    prompts=st.lists(st.text(max_size=30), max_size=4),
    temperature=st.floats(0, 2),
    num_steps=st.integers(0, MAX_STEPS),
)
@settings(max_examples=60, deadline=None)
def test_every_run_of_the_page_round_trips(
    block_size: int, num_blocks: int, swaps: bool, prompts: list[str], temperature: float, num_steps: int
) -> None:
    config = live_config("m", block_size, num_blocks, not swaps, "swap" if swaps else "recompute")
    params = SamplingParams(temperature=temperature, seed=1)
    recipe = Recipe(config, tuple(AddRequest(i, prompt, params) for i, prompt in enumerate(prompts)), num_steps)
    text = recipe.to_text()
    assert text is not None
    assert Recipe.from_text(text) == recipe


def test_a_run_too_long_for_a_link_has_no_text() -> None:
    noise = "".join(map(chr, random.Random(1).sample(range(0x4E00, 0x9F00), 900)))
    assert Recipe(CONFIG, (AddRequest(0, noise, PARAMS),), 1).to_text() is None
    assert Recipe(CONFIG, (AbortRequest(0, "A"),) * (MAX_COMMANDS + 1), 1).to_text() is None
    assert Recipe(CONFIG, (), MAX_STEPS + 1).to_text() is None


@pytest.mark.parametrize("raw", ["", "x", "!!!", "A" * (LONGEST_TEXT + 1), "日本", packed([1]), packed({})])
def test_an_invalid_recipe_is_refused(raw: str) -> None:
    with pytest.raises(RecipeError, match="cannot be read: the link is incomplete or was changed"):
        Recipe.from_text(raw)


def test_a_truncated_recipe_is_refused() -> None:
    text = Recipe(CONFIG, COMMANDS, 9).to_text()
    assert text is not None
    for length in range(len(text)):
        with pytest.raises(RecipeError):
            Recipe.from_text(text[:length])


def test_an_oversized_recipe_is_refused_unread() -> None:
    bomb = base64.urlsafe_b64encode(zlib.compress(b"[" + b" " * 1_000_000 + b"]", 9)).decode()
    assert len(bomb) < LONGEST_TEXT
    with pytest.raises(RecipeError):
        Recipe.from_text(bomb)


@pytest.mark.parametrize(
    ("place", "value"),
    [
        ((0,), 2),
        ((1, 0), 5),
        ((1, 1), 0),
        ((1, 1), 257),
        ((1, 1), True),
        ((1, 2), 1e9),
        ((1, 3), 1),
        ((1, 4), "burn"),
        ((2,), "add"),
        ((2, 0, 0), "delete"),
        ((2, 0, 1), -1),
        ((2, 0, 2), "x" * 2001),
        ((2, 0, 3), 2.5),
        ((2, 0, 3), None),
        ((2, 0, 4), 10**9),
        ((2, 0, 5), 9),
        ((2, 0, 6), 0),
        ((2, 0, 7), -1),
        ((2, 0, 8), "yes"),
        ((2, 0, 9), 1),
        ((2, 2, 2), 3),
        ((3,), MAX_STEPS + 1),
        ((3,), -1),
        ((3,), "9"),
    ],
)
def test_a_field_out_of_range_is_refused(place: tuple[int, ...], value: object) -> None:
    changed = document()
    assert Recipe.from_text(packed(changed)).num_steps == 9
    inner: list[object] = changed
    for index in place[:-1]:
        inner = inner[index]  # type: ignore[assignment]
    inner[place[-1]] = value
    with pytest.raises(RecipeError):
        Recipe.from_text(packed(changed))


def test_a_pool_too_large_for_a_tab_is_made_smaller() -> None:
    changed = document()
    changed[1] = ["tiny-random", 256, 512, True, "recompute"]
    assert Recipe.from_text(packed(changed)).config.num_blocks == 16


def test_the_config_is_the_pages_own() -> None:
    assert isinstance(CONFIG, EngineConfig)
    assert (CONFIG.max_num_seqs, CONFIG.num_cpu_blocks) == (16, 0)
    assert live_config("m", 4, 32, True, "swap").num_cpu_blocks == 32
