"""Lesson "Share matching prefixes": two answers on shared blocks, the reader's words forked, the paper's figures."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd

from course.conversation import conversation
from course.messages import Facts, Message, Plural, Text
from course.scene import Scene
from course.sharing.figure_8 import figure_8
from course.sharing.figure_9 import figure_9
from course.sharing.lesson import LESSON
from course.sharing.scene import (
    asked_again,
    copy_on_write,
    two_answers,
    two_samples_by_prefix_cache,
)
from course.words import words_of
from engine.i18n import N_, _, counted
from engine.trace.events import BlockCopied, SlotsWritten
from engine.trace.state import CacheState
from views.figures import Figure
from views.lesson_picture import FrameTexts, Picture, facts_of, picture, renamed, words_of_frame
from views.memory_map import frames
from views.memory_map.frames import Payload, frames_payload, states_payload
from views.memory_map.narration import headline, sentences
from views.server.memoize import memoize
from views.url_values import ChoiceRule, NumberRule, TextRule

KEY, FORK, SLOW, PAPER = LESSON.key, "forking", "slowly", "paper_figures"
"""The page has four pictures; each is known by its key."""


def _counters(state: CacheState) -> Mapping[str, Any]:
    return {"counters": state.counters}


SHARED = Figure(N_("Blocks shared"), "{usage.num_shared_blocks}")
PRIVATE = Figure(N_("Private blocks"), "{usage.num_private_blocks}")
AVOIDED = Figure(N_("Blocks saved by sharing"), "{usage.num_copies_avoided}")
COPIED = Figure(N_("Blocks copied"), "{counters.num_copies}")
FOUND = Figure(N_("Tokens found in the cache"), "{counters.prefix_cache_hits}")


# ---- the same beginning, stored once ----


@dataclass(frozen=True)
class Way:
    """One way to share: how the scene is made, and what to say about it."""

    make: Callable[[], Scene]
    figures: tuple[Figure, ...]
    captions: tuple[Text, ...]


THREE_REQUESTS = N_("Prefix cache: three prompts")
"""The requests of `course.conversation`."""
WAYS = {
    N_("Fork: two samples"): Way(
        two_answers,
        (SHARED, PRIVATE, AVOIDED, COPIED),
        (
            Plural(
                "usage.num_shared_blocks",
                "**One prompt, two answers.** The request forks, and both block tables point to the same {n} "
                "block. Nothing is copied.",
                "**One prompt, two answers.** The request forks, and both block tables point to the same {n} "
                "blocks. Nothing is copied.",
            ),
            N_("The prompt ends where a block ends, so each answer continues in a new private block."),
        ),
    ),
    THREE_REQUESTS: Way(
        lambda: conversation(block_size=4, num_blocks=18, way="prefix_cache"),
        (SHARED, PRIVATE, AVOIDED, FOUND),
        (
            N_(
                "**Three requests, one after the other.** A full block gets a hash of its tokens and of all "
                "tokens before them. B and C begin with the same words, so they look up the same hashes and "
                "find the blocks."
            ),
            Plural(
                "counters.prefix_cache_hits",
                "{n} token is not computed again. A partly filled block has no hash, so its tokens are "
                "computed again; nothing is ever copied.",
                "{n} tokens are not computed again. A partly filled block has no hash, so its tokens are "
                "computed again; nothing is ever copied.",
            ),
        ),
    ),
    N_("Prefix cache: two samples"): Way(
        two_samples_by_prefix_cache,
        (SHARED, PRIVATE, AVOIDED, FOUND),
        (
            N_("**The same two answers without a fork.** The second one finds the prompt's full blocks by their hash."),
            N_(
                "The last token of a prompt is always computed: its logits are needed to sample the next. So "
                "the last block of this prompt is computed a second time."
            ),
        ),
    ),
    N_("Prefix cache: repeat later"): Way(
        asked_again,
        (SHARED, PRIVATE, FOUND, Figure(N_("Blocks cached"), "{usage.num_cached_blocks}")),
        (
            N_(
                "**A freed block is not erased.** A ends, and its blocks are freed. They stay cached until "
                "they are allocated for other tokens."
            ),
            Plural(
                "counters.prefix_cache_hits",
                "B arrives with the same prompt and finds {n} token of it. The last block is computed again "
                "although it is still cached: the logits of the last token are needed to sample the next.",
                "B arrives with the same prompt and finds {n} tokens of it. The last block is computed again "
                "although it is still cached: the logits of the last token are needed to sample the next.",
            ),
        ),
    ),
}
WAY = ChoiceRule(
    "way",
    N_("Way of sharing"),
    tuple(WAYS),
    formerly={
        "fork (the paper)": "Fork: two samples",
        "find by content (vLLM)": "Prefix cache: three prompts",
        "find by content, one prompt": "Prefix cache: two samples",
        "asked again later": "Prefix cache: repeat later",
    },
)
STEP = "step"


@memoize(maxsize=8)
def shared_beginning(way: str) -> Picture:
    """Values: what the way's scene counts, words or steps."""
    scene = WAYS[way].make()
    label = (
        Plural("value", "{n} word of each answer", "{n} words of each answer")
        if way == WAY.options[0]
        else N_("step {value}")
    )
    texts = FrameTexts(label, WAYS[way].figures, captions=WAYS[way].captions, more=_counters)
    return picture(scene, texts, _("Sharing: {way}").format(way=_(way)))


# ---- the reader's own words, forked after each of them ----

LONGEST_TEXT = 240
TEXT = TextRule("text", N_("Your words"), LONGEST_TEXT)
OTHER = TextRule("other", N_("The other ending"), LONGEST_TEXT)
DEFAULT_TEXT, DEFAULT_OTHER = "the old ship sails home at dawn", "sinks in deep fog"
BLOCK_SIZE = NumberRule("block", N_("Block size"), 1, 8, 4)
AFTER, DEFAULT_AFTER = "after", 3
MOMENT = "moment"
MOST_WORDS = 24

FORK_FIGURES = (SHARED, PRIVATE, COPIED, AVOIDED)
FORK_AFTER, COPIED_BLOCKS, COPIED_SLOTS, WHERE = (
    N_("Fork after word"),
    N_("Blocks copied"),
    N_("Slots copied"),
    N_("Fork point"),
)
INSIDE, AT_EDGE = N_("inside a block"), N_("at a block boundary")


@dataclass(frozen=True)
class ForkPoints:
    """One frame a fork point: both answers have written their first word after it."""

    scenes: Mapping[int, Scene]
    payload: Payload

    @property
    def values(self) -> tuple[int, ...]:
        """Words before the fork, one a frame."""
        return tuple(self.scenes)


@dataclass(frozen=True)
class SlowMotion:
    """One frame each thing that happens to memory, from the fork to the first word after it. Values count frames."""

    payload: Payload

    @property
    def values(self) -> tuple[int, ...]:
        """The frames, counted from 0."""
        return tuple(range(len(self.payload["frames"])))


def why_not(text: str, other: str) -> str:
    """A sentence when these words cannot be forked, else nothing."""
    if len(words_of(text)) < 2:
        return _("A fork needs at least two words: one before it and one after.")
    if not words_of(other):
        return _("The other ending needs at least one word.")
    if len(words_of(text)) > MOST_WORDS:
        too_many = _("The picture has room for {most} words; these are {count}.")
        return too_many.format(most=MOST_WORDS, count=len(words_of(text)))
    return ""


@memoize(maxsize=32)
def fork_points(text: str, other: str, block_size: int) -> ForkPoints:
    """Values: words before the fork, 1 to all but one. Raises ValueError when `why_not` has something to say."""
    scenes = copy_on_write(words_of(text), words_of(other), block_size)
    title = _("A fork after each word")
    payload = states_payload((_fork_frame(*item) for item in scenes.items()), title=title)
    for frame, item in zip(payload["frames"], scenes.items(), strict=True):
        facts = _fork_facts(*item)
        frame |= words_of_frame(FORK_FIGURES, captions_of_fork(facts), facts)
    return ForkPoints(scenes, renamed(payload))


@memoize(maxsize=32)
def slow_motion(text: str, other: str, block_size: int, fork_at: int) -> SlowMotion:
    """The fork after `fork_at` words, event by event."""
    trace = fork_points(text, other, block_size).scenes[fork_at].trace
    return SlowMotion(frames_payload(trace, granularity="event", first=1, last=2, title=_("One fork, event by event")))


def copies_of(scene: Scene) -> list[BlockCopied]:
    """Every copy the engine made in the scene."""
    return [event for event in scene.trace if isinstance(event, BlockCopied)]


def fork_points_frame(scenes: Mapping[int, Scene]) -> pd.DataFrame:
    """One row a fork point: where it falls, and what was copied there, read from the traces."""
    return pd.DataFrame(
        {
            FORK_AFTER: fork_at,
            WHERE: _(INSIDE if copies_of(scene) else AT_EDGE),
            COPIED_BLOCKS: len(copies_of(scene)),
            COPIED_SLOTS: sum(event.num_slots for event in copies_of(scene)),
        }
        for fork_at, scene in scenes.items()
    )


def _fork_frame(fork_at: int, scene: Scene) -> frames.LabelledState:
    """Which slot takes which word is left to the slow picture: here the sentences are about blocks."""
    moves = [event for step in (1, 2) for event in scene.trace.events_of(step) if event.group == "memory"]
    about_blocks = [event for event in moves if not isinstance(event, SlotsWritten)]
    label = counted("fork after {n} word", "fork after {n} words", fork_at)
    return frames.LabelledState(label, scene.at(1), sentences(about_blocks), headline=headline(about_blocks))


def _fork_facts(fork_at: int, scene: Scene) -> Facts:
    num_slots = sum(event.num_slots for event in copies_of(scene))
    return {**facts_of(scene.at(1), fork_at, _counters), "num_slots_copied": num_slots}


def captions_of_fork(facts: Facts) -> tuple[Text, ...]:
    """What this fork point costs."""
    if facts["counters"].num_copies:
        return (
            Message(
                N_(
                    "Here the fork is **inside a block**. A is the first to write into it, so A copies the "
                    "{num_slots_copied} in it: {num_copies} copied. A#1 is then the only user of the old block "
                    "and writes in place."
                ),
                num_slots_copied=Plural("num_slots_copied", "{n} token that is", "{n} tokens that are"),
                num_copies=Plural("counters.num_copies", "{n} block", "{n} blocks"),
            ),
        )
    return (
        Plural(
            "counters.num_copies",
            "Here the fork is **at a block boundary**. Neither writes into a shared block: {n} block copied, "
            "and each continues in a new block.",
            "Here the fork is **at a block boundary**. Neither writes into a shared block: {n} blocks copied, "
            "and each continues in a new block.",
        ),
    )


# ---- the paper's figures ----

FIGURES = {
    N_("Fig. 8: parallel sampling"): Way(
        figure_8,
        (SHARED, PRIVATE, COPIED, AVOIDED),
        (
            N_(
                "**Two samples of one prompt** share blocks 7 and 1. Block 1 is partly filled, so the first to "
                "write copies it: block 1 to block 3. The other then writes into block 1 in place."
            ),
            N_("The paper calls the samples A1 and A2. Here the first is A and the second A#1, with the mark A1."),
        ),
    ),
    N_("Fig. 9: beam search"): Way(
        figure_9,
        (SHARED, PRIVATE, COPIED, AVOIDED),
        (
            N_(
                "**Four beams** keep the most likely texts. At every step some beams fork and others are "
                "pruned. A pruned beam releases its blocks; those that other beams share stay."
            ),
            N_(
                "In step 7 two candidates are pruned and blocks 2, 4, 5 and 8 are freed. In step 8 the beams "
                "take blocks 9 to 12. The figure in the paper starts in the middle of the search; this picture "
                "starts at the prompt."
            ),
        ),
    ),
}
FIGURE = ChoiceRule("figure", N_("Figure"), tuple(FIGURES))
FRAME = "frame"


@memoize(maxsize=4)
def paper_figure(name: str) -> Picture:
    """Every step of the figure's run. Values: steps."""
    shown = FIGURES[name]
    drawn = shown.make()
    every_step = Scene(drawn.trace, {step: step for step in range(drawn.trace.num_steps + 1)}, "steps")
    return picture(
        every_step, FrameTexts(N_("step {value}"), shown.figures, captions=shown.captions, more=_counters), name
    )
