"""Lesson "Share matching prefixes": one copy of what two answers have in common, and what happens when they part.

Two ways, both real. The paper's (2023): a request forks into samples, all blocks are shared at once, and a block
is copied when one of its holders is about to write into it. vLLM V1's: full blocks are found again by their
content; what is in a half-filled block is computed again, so nothing is ever copied.
"""

from __future__ import annotations

from collections.abc import Sequence

from course.conversation import CONVERSATION, SYSTEM_PROMPT
from course.scene import Scene
from course.scripted_engine import add, blocks_for, play, scene_config, scripted_engine
from course.words import require_words
from engine.config import ParallelSampling
from engine.trace.trace import Trace

PREFIX = SYSTEM_PROMPT
ANSWERS = (CONVERSATION[0].reply[:6], CONVERSATION[1].reply[:6])
"""Two answers to one prompt: the first six words of two replies."""


def two_answers(
    prompt: Sequence[str] = PREFIX, answers: tuple[Sequence[str], Sequence[str]] = ANSWERS, block_size: int = 4
) -> Scene:
    """The paper's way: one request, two samples A and A#1 forked from one prompt.

    Values: words of each answer that are written, 0 (forked, nothing written since) to the shorter answer's length.
    A prompt that ends inside a block costs one copy, at value 1; one that ends at an edge costs none.
    Raises ValueError when the prompt or an answer has no word.
    """
    trace, num_words = _play_two_samples(prompt, answers, block_size, "fork")
    return Scene(trace, {count: 1 + count for count in range(num_words + 1)}, "words of each answer written")


def copy_on_write(words: Sequence[str], other_words: Sequence[str], block_size: int = 4) -> dict[int, Scene]:
    """The paper's way on the reader's own words, forked after each number of them: one scene a fork point.

    Keys: words of the prompt, 1 to all but one. In each scene A goes on with the reader's words, A#1 with
    `other_words` (at least one). A key that is a multiple of `block_size` forks at an edge: no copy.
    """
    require_words(words, at_least=2)
    return {
        fork_at: two_answers(words[:fork_at], (words[fork_at:], other_words), block_size)
        for fork_at in range(1, len(words))
    }


def two_samples_by_prefix_cache(
    prompt: Sequence[str] = PREFIX, answers: tuple[Sequence[str], Sequence[str]] = ANSWERS, block_size: int = 4
) -> Scene:
    """vLLM's way for the same two samples: A#1 finds A's full blocks and computes the rest of the prompt itself.

    At least one token must be computed to have something to choose from, so a prompt that ends at an edge shares one
    block less than by forking. Values: steps, from 1: the samples are not in step with each other.
    Raises ValueError when the prompt or an answer has no word.
    """
    trace, num_words = _play_two_samples(prompt, answers, block_size, "prefix_cache")
    return Scene(trace, {step: step for step in range(2 + num_words)}, "steps")


def asked_again(prompt: Sequence[str] = PREFIX, answer: Sequence[str] = ANSWERS[0], block_size: int = 4) -> Scene:
    """Request A ends and gives its blocks back; then B comes with the same prompt and finds them by their content.

    Values: steps, from 0. A's last step frees its blocks; B starts in the next one and is still running at the end.
    Raises ValueError when the prompt or the answer has no word.
    """
    _require(prompt, (answer,))
    longest = len(prompt) + len(answer) + 1
    config = scene_config(
        block_size=block_size,
        num_blocks=2 * blocks_for(longest, block_size),
        longest=longest,
        way="prefix_cache",
    )
    engine = scripted_engine(config, {"A": answer, "B": answer})
    add(engine, prompt, num_output_tokens=len(answer) - 1)
    play(engine, len(answer))
    add(engine, prompt, num_output_tokens=len(answer))
    play(engine, len(answer))
    return Scene(engine.trace, {step: step for step in range(2 * len(answer) + 1)}, "steps")


def _play_two_samples(
    prompt: Sequence[str], answers: tuple[Sequence[str], Sequence[str]], block_size: int, way: ParallelSampling
) -> tuple[Trace, int]:
    """One prompt, samples A and A#1, as many words as the shorter answer has: the trace and that count."""
    _require(prompt, answers)
    num_words = min(map(len, answers))
    config = scene_config(
        block_size=block_size,
        num_blocks=2 * blocks_for(len(prompt) + num_words + 1, block_size),
        longest=len(prompt) + num_words + 1,
        way=way,
    )
    engine = scripted_engine(config, {"A": answers[0], "A#1": answers[1]})
    add(engine, prompt, num_output_tokens=num_words + 1, n=2)
    play(engine, 1 + num_words)
    return engine.trace, num_words


def _require(prompt: Sequence[str], answers: Sequence[Sequence[str]]) -> None:
    require_words(prompt)
    for answer in answers:
        require_words(answer)
