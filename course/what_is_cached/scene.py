"""Lesson "What is cached": keys and values of one request, one token more each step."""

from __future__ import annotations

from collections.abc import Sequence

from course.growth.scene import growth
from course.scene import Scene
from engine.config import MAX_BLOCK_SIZE


def what_is_cached(prompt: Sequence[str], reply: Sequence[str]) -> Scene:
    """One request in one block that is large enough for all of it (up to 255 words): blocks come in a later lesson.

    Values: tokens written, 0, then the prompt, then one word of the reply more each. A frame with k tokens written
    knows k + 1: the newest token has no keys and values yet.
    Raises ValueError when the prompt is empty or the words are too many.
    """
    words = [*prompt, *reply]
    block_size = min(len(words) + 1, MAX_BLOCK_SIZE)
    return growth(words, block_size, num_prompt_words=max(len(prompt), 1), num_spare_blocks=0)
