"""Questions of "The equation is unchanged"."""

from __future__ import annotations

from random import Random

from engine.lab.timeline import peak
from engine.questions.question import Draft, Misconception, Wrong
from engine.questions.wording import how_many
from engine.said import said
from engine.sampling_params import SamplingParams
from engine.scenes.scripted_run import blocks_for, play_to_the_end, scene_config
from engine.scenes.words import passage
from engine.scripted import scripted_engine
from engine.usage import usage_of


def slots_at_the_fullest(random: Random) -> Draft:
    size, reserved = random.randint(3, 8), random.choice((32, 48, 64))
    num_prompt = num_reply = written = size
    while written % size == 0:  # a last block without a tail would not tell blocks from tokens
        num_prompt, num_reply = random.randint(4, 14), random.randint(4, 12)
        written = num_prompt + num_reply - 1
    held = _most_held(num_prompt, num_reply, size)
    return Draft(
        kind="slots at the fullest",
        prompt=said(
            "A prompt of {num_prompt} tokens gets a reply of {num_reply}.\n"
            "One side reserves {reserved} slots for it; the other takes blocks of {size} as it needs them.\n"
            "The words and the scores are the same.\n"
            "How many slots does the paged side hold at most?",
            num_prompt=num_prompt,
            num_reply=num_reply,
            reserved=reserved,
            size=size,
        ),
        right=how_many(held, "slot"),
        because="Prompt and reply in whole blocks; the last token's keys and values are never written.",
        wrong=(
            Wrong(
                how_many(reserved, "slot"),
                "That is the reservation, held from the first step on whatever is written.",
                Misconception.AS_RESERVED,
            ),
            Wrong(
                how_many(written, "slot"),
                "So many are written. Blocks are taken whole, so the last one has empty slots.",
                Misconception.WASTES_NOTHING,
            ),
            Wrong(
                how_many(blocks_for(num_reply - 1, size) * size, "slot"),
                "The prompt's keys and values are kept as well.",
                Misconception.PROMPT_NOT_CACHED,
            ),
        ),
        controls={"num_prompt": num_prompt, "num_reply": num_reply, "size": size},
    )


def _most_held(num_prompt: int, num_reply: int, size: int) -> int:
    """Slots of all blocks in use, at the fullest moment of the request's life."""
    longest = num_prompt + num_reply
    config = scene_config(block_size=size, num_blocks=blocks_for(longest, size), longest=longest)
    engine = scripted_engine(config, {})
    engine.add_request(" ".join(passage(num_prompt)), SamplingParams(max_tokens=num_reply))
    play_to_the_end(engine)
    return peak(engine.trace, lambda state: usage_of(state).num_held_slots)


KINDS = (slots_at_the_fullest,)
