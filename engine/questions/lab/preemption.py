"""Questions of "Preemption, live"."""

from __future__ import annotations

from random import Random

from engine.config import EngineConfig
from engine.engine import Engine
from engine.events import RequestPreempted, SequenceScheduled
from engine.questions.question import Draft, Misconception, Wrong
from engine.questions.wording import how_many, listed
from engine.said import said
from engine.sampling_params import SamplingParams
from engine.scenes.scripted_run import blocks_for, play_to_the_end
from engine.scenes.words import passage
from engine.scripted import scripted_engine

NAMES = ("A", "B", "C")


def who_makes_room(random: Random) -> Draft:
    engine, lengths = _draw(random)
    victim = _first_preemption(engine).request_id
    largest = NAMES[lengths.index(max(lengths))]
    return Draft(
        kind="who makes room",
        prompt=said(
            "A, B and C came in this order, with {lengths} tokens.\n"
            "They hold all {num_blocks} blocks of {block_size} slots but one, and grow by a token each step.\n"
            "Then somebody needs a block, and none is free.\n"
            "Who gives its blocks back?",
            lengths=listed(lengths),
            num_blocks=engine.config.num_blocks,
            block_size=engine.config.block_size,
        ),
        right=victim,
        because="It came last, so those who came before it keep what they have.",
        wrong=(
            Wrong("A", "It came first: the one who came last makes room.", Misconception.OLDEST_MAKES_ROOM),
            Wrong(
                largest, "Who holds most is not asked: the one who came last makes room.",
                Misconception.LARGEST_MAKES_ROOM,
            ),
            Wrong(
                "Nobody: whoever needs it waits",
                "Everybody holds blocks and waits for more, so nobody would ever end.",
                Misconception.WAITING_IS_ENOUGH,
            ),
        ),
        controls={"lengths": listed(lengths), "victim": victim},
    )  # fmt: skip


def tokens_computed_again(random: Random) -> Draft:
    engine, lengths = _draw(random)
    preempted = _first_preemption(engine)
    name = preempted.request_id
    num_prompt = lengths[NAMES.index(name)]
    held = engine.trace.at(preempted.step - 1).sequences[name].num_computed_tokens
    again = _resumed(engine, name)
    return Draft(
        kind="tokens computed again",
        prompt=said(
            "{name} has a prompt of {num_prompt} tokens and {held} tokens in the cache.\n"
            "It is preempted, and its blocks are thrown away.\n"
            "How many tokens are computed a second time when it comes back?",
            name=name,
            num_prompt=num_prompt,
            held=held,
        ),
        right=how_many(again.num_recomputed_tokens, "token"),
        because="All that was in the cache is gone: prompt and reply so far run again, in one step.",
        wrong=(
            Wrong(
                how_many(num_prompt, "token"),
                "The reply so far was in the cache as well, and is gone as well.",
                Misconception.ONLY_THE_PROMPT_IS_LOST,
            ),
            Wrong(
                how_many(held - num_prompt, "token"),
                "The prompt's keys and values were in those blocks, too.",
                Misconception.ONLY_NEWEST,
            ),
            Wrong(
                how_many(0, "token"),
                "That is so when blocks are swapped out and in; here they were thrown away.",
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
