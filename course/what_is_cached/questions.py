"""Questions of "What is cached"."""

from __future__ import annotations

from random import Random

from course.misconceptions import Misconception
from course.question import Draft, Wrong
from course.what_is_cached.scene import what_is_cached
from course.words import passage
from engine.i18n import _, tokens_counted
from engine.model.kv_cache_size import HALF_PRECISION, WELL_KNOWN, size_in_words
from engine.trace.usage import usage_of


def tokens_with_keys_and_values(random: Random) -> Draft:
    """How many tokens have keys and values in the cache."""
    num_prompt, num_chosen = random.randint(3, 12), random.randint(2, 9)
    scene = what_is_cached(passage(num_prompt), passage(num_chosen))
    value = next(v for v in scene.values if usage_of(scene.at(v)).num_tokens_known == num_prompt + num_chosen)
    written = usage_of(scene.at(value)).num_tokens_written
    return Draft(
        prompt=_(
            "A prompt has {num_prompt}.\n"
            "The model has sampled {num_chosen} of the reply so far.\n"
            "How many tokens have their keys and values in the cache?"
        ).format(
            num_prompt=tokens_counted(num_prompt),
            num_chosen=tokens_counted(num_chosen),
        ),
        right=tokens_counted(written),
        because=_("All but the newest token: its keys and values are computed and written in the next step."),
        wrong=(
            Wrong(
                tokens_counted(num_prompt + num_chosen),
                _("The newest token has been sampled, but the model has not processed it yet."),
                Misconception.SAMPLED_HAS_KV,
            ),
            Wrong(
                tokens_counted(num_chosen),
                _("The reply attends to the prompt as well, so the prompt is cached too."),
                Misconception.PROMPT_NOT_CACHED,
            ),
            Wrong(
                _("1 token"),
                _("Every later step attends to all earlier tokens, so all of them are kept."),
                Misconception.ONLY_NEWEST,
            ),
        ),
        controls={"num_prompt": num_prompt, "num_reply": num_chosen},
        scene=scene,
        value=value,
    )


def bytes_a_token(random: Random) -> Draft:
    """How many bytes the cache needs for one token."""
    model = random.choice([m for m in WELL_KNOWN if m.queries_per_kv_head > 1])
    right = model.kv_bytes_per_token(HALF_PRECISION)
    return Draft(
        prompt=_(
            "{model.name} has {model.num_layers} layers, {model.num_heads} query heads, "
            "{model.num_kv_heads} KV heads, and head dimension {model.head_dim}.\n"
            "Each number takes {num_bytes} bytes.\n"
            "How large are the keys and values of one token?"
        ).format(model=model, num_bytes=HALF_PRECISION),
        right=size_in_words(right),
        because=_("Two (a key and a value) × layers × KV heads × head dimension × bytes per number."),
        wrong=(
            Wrong(
                size_in_words(right * model.queries_per_kv_head),
                _(
                    "{model.queries_per_kv_head} query heads share each KV head, and its keys and values are "
                    "stored once."
                ).format(model=model),
                Misconception.QUERY_HEADS,
            ),
            Wrong(size_in_words(right // 2), _("Both keys and values are stored."), Misconception.KEYS_ONLY),
            Wrong(
                size_in_words(right * 8),
                _("16 bits are 2 bytes: this counts bits as bytes."),
                Misconception.BITS_FOR_BYTES,
            ),
        ),
        controls={"model": model.name},
    )


KINDS = (bytes_a_token, tokens_with_keys_and_values)
