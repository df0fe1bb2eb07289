"""Questions of "Preemption, live"."""

from __future__ import annotations

from random import Random

from course.misconceptions import Misconception
from course.question import Draft, Wrong, listed
from course.scripted_engine import blocks_for, play_to_the_end, scripted_engine
from course.words import passage
from engine.config import EngineConfig
from engine.engine import Engine
from engine.i18n import _, tokens_counted
from engine.sampling_params import SamplingParams
from engine.trace.events import RequestPreempted, SequenceScheduled

NAMES = ("A", "B", "C")


def who_makes_room(random: Random) -> Draft:
    """Which request is preempted when blocks run out."""
    engine, lengths = _draw(random)
    victim = _first_preemption(engine).request_id
    largest = NAMES[lengths.index(max(lengths))]
    return Draft(
        prompt=_(
            "A, B and C arrived in this order, with {lengths} tokens.\n"
            "They hold all but one of {num_blocks} blocks of {block_size} slots, and each grows by one "
            "token per step.\n"
            "Then one of them needs a block, and none is free.\n"
            "Which request is preempted?"
        ).format(lengths=listed(lengths), num_blocks=engine.config.num_blocks, block_size=engine.config.block_size),
        right=victim,
        because=_("It arrived last, so the earlier requests keep their blocks."),
        wrong=(
            Wrong(
                "A", _("A arrived first; the request that arrived last is preempted."), Misconception.OLDEST_MAKES_ROOM
            ),
            Wrong(
                largest,
                _("The number of blocks does not matter: the request that arrived last is preempted."),
                Misconception.LARGEST_MAKES_ROOM,
            ),
            Wrong(
                _("None: the request that needs a block waits"),
                _("All of them would hold blocks and wait for more, so none would ever finish."),
                Misconception.WAITING_IS_ENOUGH,
            ),
        ),
        controls={"lengths": listed(lengths), "victim": victim},
    )


def tokens_computed_again(random: Random) -> Draft:
    """How many tokens a preempted request computes again."""
    engine, lengths = _draw(random)
    preempted = _first_preemption(engine)
    name = preempted.request_id
    num_prompt = lengths[NAMES.index(name)]
    held = engine.trace.at(preempted.step - 1).sequences[name].num_computed_tokens
    again = _resumed(engine, name)
    return Draft(
        prompt=_(
            "{name} has a prompt of {num_prompt} tokens and {held} tokens in the cache.\n"
            "It is preempted and its blocks are freed. There is no prefix cache.\n"
            "How many tokens are computed again when it resumes?"
        ).format(name=name, num_prompt=num_prompt, held=held),
        right=tokens_counted(again.num_recomputed_tokens),
        because=_("Everything it had in the cache is gone: prompt and reply so far are computed again, in one step."),
        wrong=(
            Wrong(
                tokens_counted(num_prompt),
                _("The reply so far was in the cache too, and it is gone too."),
                Misconception.ONLY_THE_PROMPT_IS_LOST,
            ),
            Wrong(
                tokens_counted(held - num_prompt),
                _("The prompt's keys and values were in those blocks too."),
                Misconception.ONLY_NEWEST,
            ),
            Wrong(
                tokens_counted(0),
                _("That is the case with swapping; here the blocks were freed."),
                Misconception.FREED_IS_KEPT,
            ),
        ),
        controls={"num_prompt": num_prompt, "held": held},
    )


def _draw(random: Random) -> tuple[Engine, tuple[int, ...]]:
    """Three requests run to their end in a pool with one block more than they start with; the last is not the largest.

    One of them was preempted after it had put some of its reply into the cache.
    """
    while True:
        block_size = random.randint(3, 5)
        lengths = tuple(random.sample(range(block_size + 1, 4 * block_size), 3))
        if lengths[2] == max(lengths) or lengths[0] == max(lengths):
            continue
        engine = _run(block_size, lengths)
        first = _first_preemption(engine)
        held = engine.trace.at(first.step - 1).sequences[first.request_id].num_computed_tokens
        if held > lengths[NAMES.index(first.request_id)]:
            return engine, lengths


def _run(block_size: int, lengths: tuple[int, ...]) -> Engine:
    num_blocks = sum(blocks_for(length, block_size) for length in lengths) + 1
    config = EngineConfig(
        block_size=block_size,
        num_blocks=num_blocks,
        max_num_batched_tokens=block_size * num_blocks,
        max_model_len=block_size * num_blocks,
        enable_prefix_caching=False,
    )
    engine = scripted_engine(config, {})
    for name, length in zip(NAMES, lengths, strict=True):
        engine.add_request(" ".join(passage(length)), SamplingParams(max_tokens=2 * block_size), name)
    play_to_the_end(engine)
    return engine


def _first_preemption(engine: Engine) -> RequestPreempted:
    return next(event for event in engine.trace if isinstance(event, RequestPreempted))


def _resumed(engine: Engine, name: str) -> SequenceScheduled:
    """The step in which it runs again."""
    runs = (event for event in engine.trace if isinstance(event, SequenceScheduled) and event.seq_id == name)
    return next(event for event in runs if event.num_recomputed_tokens)


KINDS = (who_makes_room, tokens_computed_again)
