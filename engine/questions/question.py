"""Question, Choice and the misconceptions that wrong choices come from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from random import Random

from engine.scenes.scene import Scene

MAX_WRONG = 3
MIN_WRONG = 2


class Misconception(StrEnum):
    """What people hold about paged memory and is not so (design notes, "what learners get wrong")."""

    SAMPLED_HAS_KV = "A token that was just chosen already has its keys and values."
    PROMPT_NOT_CACHED = "Only the reply is cached."
    ONLY_NEWEST = "Only the newest token is kept."
    QUERY_HEADS = "Every attention head has keys and values of its own."
    KEYS_ONLY = "Keys or values are stored, not both."
    BITS_FOR_BYTES = "A 16-bit number takes 16 bytes."
    RESERVED_CAN_BE_LENT = "Others may use reserved slots while they are empty."
    MIXED_UP = "Used, unused and reserved slots are one count."
    FREE_IS_FREE = "Free slots are enough, wherever they are."
    FITS_ARE_ALIKE = "All allocators choose the same gap."
    COMPACTION = "Running requests can be moved together at any time."
    MUST_BE_ADJACENT = "Blocks must be adjacent."
    TAIL_GROWS = "Waste in the tail grows with the length."
    BLOCK_AHEAD = "The next block is taken before it is needed."
    STARTED_IS_FREE = "A block counts when it is full."
    WASTES_NOTHING = "Paging wastes nothing."
    COMPRESSES = "Paging compresses the keys and values."
    POSITION_IS_PLACE = "The position of a token says where it lies."
    BLOCKS_ARE_SLOTS = "Blocks and slots are the same."
    PHYSICAL_ORDER = "Blocks are read in the order of their numbers."
    APPROXIMATES = "Paged attention is an approximation."
    SHARING_COPIES = "Sharing copies."
    BOTH_COPY = "Every holder copies before it writes."
    NEVER_COPIES = "Shared blocks can be written by all their holders."
    ALWAYS_COPIES = "Going on after a fork always costs a copy."
    FREED_IS_ERASED = "A freed block is erased."
    NOTHING_TO_COMPUTE = "A prompt that was seen before needs no computing."
    FULL_GAUGE = "A usage of 100 % means that every slot is full."
    BLOCKS_ARE_MIXED = "Different requests fill one block together."
    AS_RESERVED = "Pages hold as much as reservations."
    MEMORY_KNOWS = "Memory itself knows whose tokens lie where."
    EQUAL_TEXT_IS_SHARED = "Equal text is shared wherever it stands."
    PARTS_ARE_SHARED = "Part of a block can be shared."
    ALL_OR_NOTHING = "One difference and nothing is shared."
    OLDEST_MAKES_ROOM = "Whoever came first makes room."
    LARGEST_MAKES_ROOM = "Whoever holds most makes room."
    WAITING_IS_ENOUGH = "Whoever needs a block can wait until one is free."
    ONLY_THE_PROMPT_IS_LOST = "A preempted request computes its prompt again, and no more."
    FREED_IS_KEPT = "Blocks that were given back still hold what is needed."


@dataclass(frozen=True, slots=True)
class Choice:
    """One answer to choose. `why`: one sentence, why it is right or wrong."""

    text: str
    is_right: bool
    why: str
    misconception: Misconception | None = None


@dataclass(frozen=True, slots=True)
class Wrong:
    """A wrong answer as a lesson proposes it: what somebody with that misconception would say."""

    text: str
    why: str
    misconception: Misconception


@dataclass(frozen=True)
class Draft:
    """What a lesson makes: the right answer read from the scene, wrong ones in order of preference.

    `prompt` has one idea a line. `controls` are the arguments of the lesson's scene; `scene` at `value` is the
    picture that shows the answer (None when the answer is no picture of memory).
    """

    kind: str
    prompt: str
    right: str
    because: str
    wrong: tuple[Wrong, ...]
    controls: Mapping[str, int | str] = field(default_factory=dict)
    scene: Scene | None = None
    value: int | None = None


@dataclass(frozen=True)
class Question:
    """A draft with its choices shuffled. The same lesson and seed always give the same question."""

    lesson: str
    seed: int
    draft: Draft
    choices: tuple[Choice, ...]

    @property
    def prompt(self) -> str:
        return self.draft.prompt

    @property
    def right(self) -> Choice:
        return next(choice for choice in self.choices if choice.is_right)


def finish(lesson: str, seed: int, draft: Draft, random: Random) -> Question:
    """Keep the wrong answers that differ from the right one and from each other, and shuffle all.

    Raises ValueError when fewer than two are left: the lesson must not draw such figures.
    """
    wrong: dict[str, Choice] = {}
    for proposal in draft.wrong:
        if proposal.text != draft.right:
            wrong.setdefault(proposal.text, Choice(proposal.text, False, proposal.why, proposal.misconception))
    if len(wrong) < MIN_WRONG:
        raise ValueError(f"A question of lesson {lesson} (seed {seed}) has {len(wrong)} wrong answers.")
    choices = [Choice(draft.right, True, draft.because), *list(wrong.values())[:MAX_WRONG]]
    random.shuffle(choices)
    return Question(lesson, seed, draft, tuple(choices))
