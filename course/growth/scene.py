"""Lesson "Add pages as the request grows": one request that takes a block when it needs one."""

from __future__ import annotations

from collections.abc import Sequence

from course.scene import Scene
from course.scripted_engine import add, blocks_for, play, scene_config, scripted_engine
from course.words import require_words


def growth(
    words: Sequence[str],
    block_size: int,
    *,
    num_prompt_words: int = 1,
    num_spare_blocks: int = 1,
    free_order: Sequence[int] = (),
) -> Scene:
    """One request that stores `words` in blocks of `block_size`. Values: tokens written, 0 to all words.

    The first `num_prompt_words` are the prompt, written together; each later step writes one word more and chooses
    the next, so a frame with k tokens written knows k + 1. The request is still running in the last frame.
    Raises ValueError when there are too few or too many words.
    """
    require_words(words, at_least=num_prompt_words)
    prompt, reply = words[:num_prompt_words], words[num_prompt_words:]
    config = scene_config(
        block_size=block_size,
        num_blocks=blocks_for(len(words) + 1, block_size) + num_spare_blocks,
        longest=len(words) + 1,
        free_order=free_order,
    )
    engine = scripted_engine(config, {"A": reply})
    add(engine, prompt, num_output_tokens=len(reply) + 1)
    play(engine, len(reply) + 1)
    written = {num_prompt_words + index: 1 + index for index in range(len(reply) + 1)}
    return Scene(engine.trace, {0: 0, **written}, "tokens written")
