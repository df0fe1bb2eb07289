"""Lesson "Keep pages in order": several requests whose blocks lie anywhere, each with its own table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from course.conversation import play_conversation
from course.scene import Scene
from course.scripted_engine import add, play, scene_config, scripted_engine
from course.words import FOX, words_of
from engine.engine import Engine
from engine.i18n import _


@dataclass(frozen=True)
class Story:
    """One request of the scene: its words, and how many tokens the first request has when this one arrives."""

    words: tuple[str, ...]
    arrives_after: int


STORIES = (
    Story(FOX, 0),
    Story(words_of("Our train left without us"), 2),
    Story(words_of("Tea first then talk"), 3),
)
"""A holds 7 tokens, B 5 and C 4 when the scene ends."""

NUM_BLOCKS = 9
BLOCK_SIZE = 3
FREE_ORDER = (6, 3, 1, 5, 0, 8, 7)
"""Blocks in the order in which they are asked for: A 6, B 3, A 1, C 5, B 0, A 8, C 7. So A's table reads 6, 1, 8."""
CHAT_BLOCKS, CHAT_BLOCK_SIZE = 20, 4


def block_table(
    stories: Sequence[Story] = STORIES,
    block_size: int = BLOCK_SIZE,
    num_blocks: int = NUM_BLOCKS,
    free_order: Sequence[int] = FREE_ORDER,
    shuffle_seed: int | None = None,
) -> Scene:
    """Requests that grow together by one word a step. Values: tokens the first request has written, 0 to its last word.

    Every block but the last of a request is full. With `shuffle_seed` one frame follows in which all physical
    blocks change places and every table follows: its value is one above the last.
    Raises ValueError when the stories do not fit the pool or one would outgrow its words.
    """
    num_steps = len(stories[0].words)
    _require_fit(stories, block_size, num_blocks, num_steps)
    config = scene_config(block_size=block_size, num_blocks=num_blocks, longest=num_steps + 1, free_order=free_order)
    engine = scripted_engine(config, {_name(i): story.words[1:] for i, story in enumerate(stories)})
    for step in range(num_steps):
        for story in (s for s in stories if s.arrives_after == step):
            add(engine, story.words[:1], num_output_tokens=len(story.words))
        play(engine, 1)
    return _ended(engine, shuffle_seed, "tokens of A written")


def chat_requests(shuffle_seed: int | None = None) -> Scene:
    """The three requests of `course.conversation` in a pool that gives blocks out in no order. Values: steps.

    With `shuffle_seed` one frame follows as in `block_table`.
    """
    order = shuffled_places(CHAT_BLOCKS, seed=1)
    engine = play_conversation(block_size=CHAT_BLOCK_SIZE, num_blocks=CHAT_BLOCKS, free_order=order)
    return _ended(engine, shuffle_seed, "steps")


def _ended(engine: Engine, shuffle_seed: int | None, control: str) -> Scene:
    """Every step so far; with a seed, one more in which all blocks change places."""
    if shuffle_seed is not None:
        engine.trace.step += 1
        engine.shuffle_blocks(shuffled_places(engine.config.num_blocks, shuffle_seed))
        engine.check_invariants()
    return Scene(engine.trace, {step: step for step in range(engine.trace.num_steps + 1)}, control)


def shuffled_places(num_blocks: int, seed: int) -> tuple[int, ...]:
    """Where each block goes: a permutation that follows from the seed and moves something when it can."""
    places, random = list(range(num_blocks)), Random(seed)
    while num_blocks > 1 and places == list(range(num_blocks)):
        random.shuffle(places)
    return tuple(places)


def _require_fit(stories: Sequence[Story], block_size: int, num_blocks: int, num_steps: int) -> None:
    lengths = [num_steps - story.arrives_after for story in stories]
    if sorted(stories, key=lambda s: s.arrives_after) != list(stories) or stories[0].arrives_after:
        raise ValueError(_("The stories must be in order of arrival, the first at 0."))
    if not all(1 <= length <= len(story.words) for length, story in zip(lengths, stories, strict=True)):
        raise ValueError(_("Each story needs a word for every step from its arrival to the end."))
    need = sum(-(-length // block_size) for length in lengths)
    if need > num_blocks:
        raise ValueError(
            _("These stories need {need} blocks of {block_size}; the pool has {num_blocks}.").format(
                need=need, block_size=block_size, num_blocks=num_blocks
            )
        )


def _name(number: int) -> str:
    return chr(ord("A") + number)
