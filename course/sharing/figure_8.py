"""Kwon et al. 2023, Fig. 8: parallel sampling. Two samples share a prompt until one writes into a shared block."""

from __future__ import annotations

from course.scene import Scene
from course.scripted_engine import add, play, scene_config, scripted_engine
from course.words import words_of

PROMPT = words_of("Four score and seven years ago our")
SAMPLES = {"A": words_of("fathers brought"), "A#1": words_of("mothers brought")}
FREE_ORDER = (7, 1, 3)
"""The figure's blocks: the prompt in 7 and 1, the copy in 3."""

SHARED, COPIED = 0, 1


def figure_8() -> Scene:
    """Values: SHARED (both samples name blocks 7 and 1) and COPIED (A has its copy, 1 -> 3, and both have written).

    Nine blocks of 4, as drawn. The paper's sample A1 is `A`, its A2 is `A#1`. A#1 is then the last holder of block 1
    and writes into it without copying.
    """
    config = scene_config(block_size=4, num_blocks=9, longest=len(PROMPT) + 2, free_order=FREE_ORDER)
    engine = scripted_engine(config, SAMPLES)
    add(engine, PROMPT, num_output_tokens=2, n=2)
    play(engine, 2)
    return Scene(engine.trace, {SHARED: 1, COPIED: 2}, "moments of the figure")
