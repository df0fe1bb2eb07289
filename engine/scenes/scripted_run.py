"""How paged scenes run: the real engine on a script of words, held against its own rules after every step."""

from __future__ import annotations

from collections.abc import Sequence

from engine.config import EngineConfig, ParallelSampling
from engine.engine import Engine
from engine.sampling_params import SamplingParams


def blocks_for(num_tokens: int, block_size: int) -> int:
    """Blocks that hold `num_tokens` tokens."""
    return -(-num_tokens // block_size)


def scene_config(
    *,
    block_size: int,
    num_blocks: int,
    longest: int,
    free_order: Sequence[int] = (),
    way: ParallelSampling = "fork",
) -> EngineConfig:
    """An engine in which a request may know `longest` tokens and still run: scenes end with requests that hold blocks.

    `way`: how blocks are shared. The paper's forks need no prefix cache, and scenes of that way have none.
    """
    return EngineConfig(
        block_size=block_size,
        num_blocks=num_blocks,
        max_num_batched_tokens=max(16, 2 * longest),
        max_model_len=longest + 1,
        enable_prefix_caching=way == "prefix_cache",
        parallel_sampling=way,
        free_order=tuple(free_order),
    )


def add(engine: Engine, prompt: Sequence[str], *, num_output_tokens: int, n: int = 1) -> str:
    """Queue a request that is still running when it has chosen `num_output_tokens` tokens."""
    return engine.add_request(" ".join(prompt), SamplingParams(max_tokens=num_output_tokens + 1, n=n))


def play(engine: Engine, num_steps: int) -> None:
    """Run steps. Raises InvariantError when one breaks a rule of the engine."""
    for _ in range(num_steps):
        engine.step()
        engine.check_invariants()


def play_to_the_end(engine: Engine) -> None:
    """Run steps until nothing is left to do. Raises InvariantError when one breaks a rule of the engine."""
    while engine.has_unfinished_requests():
        play(engine, 1)
