"""Questions of "The equation is unchanged"."""

from __future__ import annotations

from random import Random

from course.misconceptions import Misconception
from course.question import Draft, Wrong
from course.scripted_engine import blocks_for, play_to_the_end, scene_config, scripted_engine
from course.words import passage
from engine.i18n import _, slots_counted
from engine.sampling_params import SamplingParams
from engine.trace.trace import peak
from engine.trace.usage import usage_of


def slots_at_the_fullest(random: Random) -> Draft:
    """How many slots a request holds in blocks at its largest."""
    size, reserved = random.randint(3, 8), random.choice((32, 48, 64))
    num_prompt = num_reply = written = size
    while written % size == 0:  # a last block without a tail would not tell blocks from tokens
        num_prompt, num_reply = random.randint(4, 14), random.randint(4, 12)
        written = num_prompt + num_reply - 1
    held = _most_held(num_prompt, num_reply, size)
    return Draft(
        prompt=_(
            "A prompt of {num_prompt} tokens gets a reply of {num_reply} tokens.\n"
            "The contiguous layout reserves {reserved} slots; the paged layout allocates blocks of {size} "
            "as needed.\n"
            "Both give the same reply.\n"
            "How many slots does the paged layout hold at most?"
        ).format(num_prompt=num_prompt, num_reply=num_reply, reserved=reserved, size=size),
        right=slots_counted(held),
        because=_("Prompt and reply, rounded up to whole blocks; the last token's keys and values are never written."),
        wrong=(
            Wrong(
                slots_counted(reserved),
                _("This is the reservation, held from the first step, however little is written."),
                Misconception.AS_RESERVED,
            ),
            Wrong(
                slots_counted(written),
                _("This many are written. Blocks are allocated whole, so the last one has empty slots."),
                Misconception.WASTES_NOTHING,
            ),
            Wrong(
                slots_counted(blocks_for(num_reply - 1, size) * size),
                _("The prompt's keys and values are cached as well."),
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
