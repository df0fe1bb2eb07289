"""Three requests that several lessons use: one system prompt, and the questions of three users.

The same words in every lesson, so that a reader sees what each idea does to them: gaps, growth, tables, sharing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from course.scene import Scene
from course.scripted_engine import add, blocks_for, play, scene_config, scripted_engine
from course.words import words_of
from engine.config import ParallelSampling
from engine.engine import Engine
from engine.i18n import N_, _

SYSTEM_PROMPT = words_of("You are a kind guide who answers in one short clear line")
"""12 words: three full blocks of 4."""

FIRST_LESSON = "waste_between"
"""The folder of the first lesson that shows them."""


@dataclass(frozen=True)
class ChatRequest:
    """One user's question, sent after the system prompt, and the reply to it."""

    question: tuple[str, ...]
    reply: tuple[str, ...]

    @property
    def prompt(self) -> tuple[str, ...]:
        """System prompt and question, a word each."""
        return (*SYSTEM_PROMPT, *self.question)

    @property
    def words(self) -> tuple[str, ...]:
        """Prompt and reply: the tokens that the request has in the cache at its end."""
        return (*self.prompt, *self.reply)


CONVERSATION = (
    ChatRequest(words_of(N_("Which way ?")), words_of("Take the river path at noon and rest")),
    ChatRequest(words_of(N_("When ?")), words_of("Wait here until the rain stops today")),
    ChatRequest(words_of(N_("Where do we eat ?")), words_of("At the mill by the bridge")),
)
"""They end with 23, 21 and 23 tokens. Arriving one step apart, all replies are complete in the same step."""

SECOND_TURN = ChatRequest(
    (*CONVERSATION[0].question, *CONVERSATION[0].reply, *words_of(N_("How far is it ?"))),
    words_of("About one hour on foot"),
)
"""The first user asks again. A chat sends all that was said so far once more: 33 tokens with the reply."""


def conversation(*, block_size: int, num_blocks: int, way: ParallelSampling = "fork") -> Scene:
    """The three requests in the engine. Values: steps, from 0; see `play_conversation`."""
    engine = play_conversation(block_size=block_size, num_blocks=num_blocks, way=way)
    return Scene(engine.trace, {step: step for step in range(engine.trace.num_steps + 1)}, "steps")


def play_conversation(
    *, block_size: int, num_blocks: int, free_order: Sequence[int] = (), way: ParallelSampling = "fork"
) -> Engine:
    """Run requests A, B and C until their replies are written; each arrives one step after the one before.

    `way`: with "prefix_cache" a request finds the full blocks of those before it, for a block can be found once its
    keys and values are written; with "fork" separate requests share nothing.
    Raises ValueError when the pool is too small for the three without sharing.
    """
    needed = sum(blocks_for(len(request.words), block_size) for request in CONVERSATION)
    if needed > num_blocks:
        raise ValueError(
            _("The three requests need {needed} blocks of {block_size}; the pool has {num_blocks}.").format(
                needed=needed, block_size=block_size, num_blocks=num_blocks
            )
        )
    longest = max(len(request.words) for request in CONVERSATION) + 1
    config = scene_config(block_size=block_size, num_blocks=num_blocks, longest=longest, free_order=free_order, way=way)
    engine = scripted_engine(config, {name: request.reply for name, request in zip("ABC", CONVERSATION, strict=True)})
    for request in CONVERSATION:
        add(engine, request.prompt, num_output_tokens=len(request.reply) + 1)
        play(engine, 1)
    play(engine, len(CONVERSATION[-1].reply))
    return engine
