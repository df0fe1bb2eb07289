"""Kwon et al. 2023, Fig. 9: beam search with four beams. Beams end, and their blocks are freed or stay shared.

The figure's blocks, number for number: before the dotted line the candidates hold 0-1-3-5, 0-1-3-6, 0-1-3-7 and
0-2-4-8; candidates 0 and 3 end, which frees 2, 4, 5 and 8; then 9 to 12 are taken.

Where the engine's run differs from the drawing:
- The figure starts in the middle. Here the search starts at the prompt, so four early beams that the figure does
  not draw run and end in blocks 13 to 16.
- Choosing ends a step and writing begins the next: what the figure draws as one iteration is the end of step 7
  (forks and frees) and step 8 (new blocks).
- Candidates 0, 1, 2, 3 are the sequences A, A#6, A#7 and A#3. Afterwards 0 and 1 are A#6 and A#8, 2 and 3 are A#7
  and A#9.
- 9 to 12 are new because the freed blocks are full and stay cached, which puts them at the tail of the free queue.
  Without the prefix cache they would be the first to be taken again.
- Blocks have 2 slots (the figure does not say).
"""

from __future__ import annotations

from course.scene import Scene
from course.scripted_engine import play, scene_config
from course.sharing.word_model import NextWords, word_model_engine
from course.words import words_of
from engine.sampling_params import SamplingParams

PROMPT = words_of("At dawn")
FREE_ORDER = (0, 1, 13, 14, 2, 3, 4, 15, 16, 5, 8, 6, 7, 9, 11, 10, 12)

NEXT_WORDS: NextWords = {
    "dawn": {"we": 0.4, "they": 0.25, "rain": 0.2, "nobody": 0.15},
    # Block 1: each beam writes its second word, then "they" and "rain" lose to the three ways "sailed" goes on.
    "we": {"sailed": 1.0},
    "they": {"slept": 1.0},
    "rain": {"fell": 1.0},
    "nobody": {"spoke": 1.0},
    "sailed": {"north": 0.335, "south": 0.333, "home": 0.332},
    "slept": {"late": 0.25, "well": 0.25, "little": 0.25, "on": 0.25},
    "fell": {"hard": 0.25, "softly": 0.25, "again": 0.25, "everywhere": 0.25},
    "spoke": {"until": 1.0},
    # Block 2: "north past" goes on in three ways; "south" and "home" lose.
    "north": {"past": 1.0},
    "south": {"along": 1.0},
    "home": {"with": 1.0},
    "until": {"noon": 1.0},
    "past": {"ice": 0.335, "islands": 0.333, "whales": 0.332},
    "along": {"cliffs": 0.25, "sands": 0.25, "reefs": 0.25, "docks": 0.25},
    "with": {"fish": 0.25, "gifts": 0.25, "news": 0.25, "songs": 0.25},
    "noon": {"when": 0.3, "because": 0.25, "for": 0.25, "but": 0.2},
    # Block 3: candidates 0 ("ice floes") and 3 ("when bells") scatter over four words each and lose.
    "ice": {"floes": 1.0},
    "islands": {"where": 1.0},
    "whales": {"singing": 1.0},
    "when": {"bells": 1.0},
    "floes": {"drift": 0.25, "crack": 0.25, "glow": 0.25, "turn": 0.25},
    "where": {"birds": 0.51, "seals": 0.49},
    "singing": {"low": 0.51, "loud": 0.49},
    "bells": {"rang": 0.25, "broke": 0.25, "called": 0.25, "ceased": 0.25},
}

BEFORE, FREED, ALLOCATED = 0, 1, 2


def figure_9() -> Scene:
    """Values: BEFORE the dotted line, FREED (the choice is made: 2, 4, 5 and 8 are free), ALLOCATED (9 to 12 taken).

    The trace starts at the prompt, so stepping through it shows the whole search.
    """
    config = scene_config(block_size=2, num_blocks=17, longest=10, free_order=FREE_ORDER, way="prefix_cache")
    engine = word_model_engine(config, NEXT_WORDS, PROMPT)
    engine.add_request(" ".join(PROMPT), SamplingParams(max_tokens=9, beam_width=4))
    play(engine, 8)
    return Scene(engine.trace, {BEFORE: 6, FREED: 7, ALLOCATED: 8}, "moments of the figure")
