"""Lesson "Share matching prefixes": two answers on shared blocks, the reader's words forked, the paper's figures."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from engine.events import SlotsWritten
from engine.said import said
from engine.scenes.figure_8 import figure_8
from engine.scenes.figure_9 import figure_9
from engine.scenes.scene import Scene
from engine.scenes.sharing import (
    asked_again,
    copy_on_write,
    two_answers,
    two_requests_by_prefix_cache,
    two_samples_by_prefix_cache,
)
from engine.scenes.words import words_of
from engine.state import CacheState
from views import frames
from views.fork_points import copies_of
from views.frames import Payload, frames_payload, scenes_payload
from views.lesson_picture import Picture, Telling, facts_of, picture, renamed, words_of_frame
from views.made_once import made_once
from views.narration import sentences
from views.told import Facts, Figure, tell
from views.url_values import ChoiceRule, NumberRule, TextRule
from views.words import translated

KEY, FORK, SLOW, PAPER = "sharing", "forking", "slowly", "paper_figures"
"""The page has four pictures; each is known by its key."""


def _counters(state: CacheState) -> Mapping[str, Any]:
    return {"counters": state.counters}


SHARED = Figure("Blocks shared", "{usage.num_shared_blocks}")
PRIVATE = Figure("Blocks of one alone", "{usage.num_private_blocks}")
AVOIDED = Figure("Copies avoided", "{usage.num_copies_avoided}")
COPIED = Figure("Blocks copied", "{counters.num_copies}")
FOUND = Figure("Tokens found in the cache", "{counters.prefix_cache_hits}")


# ---- the same beginning, stored once ----


@dataclass(frozen=True)
class Way:
    """One way to share: how the scene is made, and what to say about it."""

    make: Callable[[], Scene]
    figures: tuple[Figure, ...]
    beats: tuple[str, ...]


WAYS = {
    "fork (the paper)": Way(
        two_answers,
        (SHARED, PRIVATE, AVOIDED, COPIED),
        (
            "**One prompt, two answers.** The request forks, and both answers name the same "
            "{usage.num_shared_blocks:block}. Nothing moves; only the tables are written.",
            "The prompt ends where a block ends, so each answer goes on in a new block of its own.",
        ),
    ),
    "find by content (vLLM)": Way(
        two_requests_by_prefix_cache,
        (SHARED, PRIVATE, AVOIDED, FOUND),
        (
            "**Two requests, one after the other.** A full block gets a name made from its tokens and all before "
            "them. B begins with the same words, asks for the same names, and finds the blocks.",
            "{counters.prefix_cache_hits:token} need no computing. Half-filled blocks have no name: "
            "they are computed again, so nothing is ever copied.",
        ),
    ),
    "find by content, one prompt": Way(
        two_samples_by_prefix_cache,
        (SHARED, PRIVATE, AVOIDED, FOUND),
        (
            "**The same two answers without a fork.** The second one looks up the prompt by its content.",
            "At least one token must be computed, to have something to choose the next word from. "
            "So the last block of this prompt is computed a second time.",
        ),
    ),
    "asked again later": Way(
        asked_again,
        (SHARED, PRIVATE, FOUND, Figure("Blocks free but findable", "{usage.num_cached_blocks}")),
        (
            "**A freed block is not erased.** A ends and gives its blocks back. Their keys and values stay until "
            "another request takes the block.",
            "B comes with the same prompt and finds {counters.prefix_cache_hits:token} of it. Its last block is "
            "computed again, though it is still there: at least one token must be, to have something to choose the "
            "next from.",
        ),
    ),
}
WAY = ChoiceRule("way", "Way of sharing", tuple(WAYS))
STEP = "step"


@made_once(maxsize=8)
def shared_beginning(way: str) -> Picture:
    """Values: what the way's scene counts, words or steps."""
    scene = WAYS[way].make()
    label = "{value:word} of each answer" if way == WAY.options[0] else "step {value}"
    telling = Telling(label, WAYS[way].figures, beats=WAYS[way].beats, more=_counters)
    return picture(scene, telling, said("Sharing: {way}", way=said(way)))


# ---- the reader's own words, forked after each of them ----

LONGEST_TEXT = 240
TEXT = TextRule("text", "Your words", LONGEST_TEXT)
OTHER = TextRule("other", "The other ending", LONGEST_TEXT)
DEFAULT_TEXT, DEFAULT_OTHER = "the old ship sails home at dawn", "sinks in deep fog"
BLOCK_SIZE = NumberRule("block", "Block size", 1, 8, 4)
AFTER, DEFAULT_AFTER = "after", 3
MOMENT = "moment"
MOST_WORDS = 24

FORK_FIGURES = (SHARED, PRIVATE, COPIED, AVOIDED)


@dataclass(frozen=True)
class ForkPoints:
    """One frame a fork point: both answers have written their first word after it."""

    scenes: Mapping[int, Scene]
    payload: Payload

    @property
    def values(self) -> tuple[int, ...]:
        return tuple(self.scenes)


@dataclass(frozen=True)
class SlowMotion:
    """One frame each thing that happens to memory, from the fork to the first word after it. Values count frames."""

    payload: Payload

    @property
    def values(self) -> tuple[int, ...]:
        return tuple(range(len(self.payload["frames"])))


def why_not(text: str, other: str) -> str:
    """A sentence when these words cannot be forked, else nothing."""
    if len(words_of(text)) < 2:
        return "A fork needs at least two words: one before it and one after."
    if not words_of(other):
        return "The other ending needs at least one word."
    if len(words_of(text)) > MOST_WORDS:
        too_many = "The picture has room for {most} words; these are {count}."
        return said(too_many, most=MOST_WORDS, count=len(words_of(text)))
    return ""


@made_once(maxsize=32)
def fork_points(text: str, other: str, block_size: int) -> ForkPoints:
    """Values: words before the fork, 1 to all but one. Raises ValueError when `why_not` has something to say."""
    scenes = copy_on_write(words_of(text), words_of(other), block_size)
    title = translated("Forked after each word")
    payload = scenes_payload((_fork_frame(*item) for item in scenes.items()), title=title)
    for frame, item in zip(payload["frames"], scenes.items(), strict=True):
        facts = _fork_facts(*item)
        frame |= words_of_frame(FORK_FIGURES, beats_of_fork(facts), facts)
    return ForkPoints(scenes, renamed(payload))


@made_once(maxsize=32)
def slow_motion(text: str, other: str, block_size: int, fork_at: int) -> SlowMotion:
    trace = fork_points(text, other, block_size).scenes[fork_at].trace
    return SlowMotion(frames_payload(trace, granularity="event", first=1, last=2, title=translated("The fork, slowly")))


def _fork_frame(fork_at: int, scene: Scene) -> frames.Scene:
    """Which slot takes which word is left to the slow picture: here the sentences are about blocks."""
    moves = [event for step in (1, 2) for event in scene.trace.events_of(step) if event.group == "memory"]
    say = sentences(event for event in moves if not isinstance(event, SlotsWritten))
    return frames.Scene(tell("fork after {value:word}", {"value": fork_at}), scene.at(1), say)


def _fork_facts(fork_at: int, scene: Scene) -> Facts:
    num_slots = sum(event.num_slots for event in copies_of(scene))
    return {**facts_of(scene.at(1), fork_at, _counters), "num_slots_copied": num_slots}


def beats_of_fork(facts: Facts) -> tuple[str, ...]:
    """What this fork point costs."""
    if facts["counters"].num_copies:
        return (
            "Here the fork falls **inside a block**. A is the first to write into it, so A copies the "
            "{num_slots_copied:token} that are in it: {counters.num_copies:block} copied. A#1 is then alone with the "
            "old block and writes in place.",
        )
    return (
        "Here the fork falls **at the edge of a block**. Nobody has to write into a shared block: "
        "{counters.num_copies:block} copied, and each goes on in a new block.",
    )


# ---- the paper's figures ----

FIGURES = {
    "Fig. 8: parallel sampling": Way(
        figure_8,
        (SHARED, PRIVATE, COPIED, AVOIDED),
        (
            "**Two samples of one prompt** share blocks 7 and 1. Block 1 is half filled, so the first to write copies "
            "it: block 1 to block 3. The other then writes into block 1 itself.",
            "The paper calls the samples A1 and A2. Here the first is A and the second A#1, with the mark A1.",
        ),
    ),
    "Fig. 9: beam search": Way(
        figure_9,
        (SHARED, PRIVATE, COPIED, AVOIDED),
        (
            "**Four beams** keep the likeliest texts. At every step some beams fork and others end. "
            "A beam that ends lets go of its blocks; what it shared lives on.",
            "In step 7 two candidates end and blocks 2, 4, 5 and 8 are free. In step 8 the beams take 9 to 12. "
            "The figure in the paper starts in the middle of the search; this picture starts at the prompt.",
        ),
    ),
}
FIGURE = ChoiceRule("figure", "Figure", tuple(FIGURES))
FRAME = "frame"


@made_once(maxsize=4)
def paper_figure(name: str) -> Picture:
    """Every step of the figure's run. Values: steps."""
    shown = FIGURES[name]
    drawn = shown.make()
    every_step = Scene(drawn.trace, {step: step for step in range(drawn.trace.num_steps + 1)}, "steps")
    return picture(every_step, Telling("step {value}", shown.figures, beats=shown.beats, more=_counters), name)
