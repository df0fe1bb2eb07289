"""Questions of "What is cached"."""

from __future__ import annotations

from random import Random

from engine.model_facts import HALF_PRECISION, WELL_KNOWN, size_in_words
from engine.questions.question import Draft, Misconception, Wrong
from engine.questions.wording import how_many
from engine.said import said
from engine.scenes.what_is_cached import what_is_cached
from engine.scenes.words import passage
from engine.usage import usage_of


def tokens_with_keys_and_values(random: Random) -> Draft:
    num_prompt, num_chosen = random.randint(3, 12), random.randint(2, 9)
    scene = what_is_cached(passage(num_prompt), passage(num_chosen))
    value = next(v for v in scene.values if usage_of(scene.at(v)).num_tokens_known == num_prompt + num_chosen)
    written = usage_of(scene.at(value)).num_tokens_written
    return Draft(
        kind="tokens with keys and values",
        prompt=said(
            "A prompt has {num_prompt:token}.\n"
            "The model has chosen {num_chosen:token} of its reply so far.\n"
            "How many tokens have their keys and values in the cache?",
            num_prompt=num_prompt,
            num_chosen=num_chosen,
        ),
        right=how_many(written, "token"),
        because="All tokens but the newest: its keys and values are written when the next step runs it.",
        wrong=(
            Wrong(
                how_many(num_prompt + num_chosen, "token"),
                "The newest token is known, but the model has not run it yet.",
                Misconception.SAMPLED_HAS_KV,
            ),
            Wrong(
                how_many(num_chosen, "token"),
                "The reply attends to the prompt too, so the prompt is cached.",
                Misconception.PROMPT_NOT_CACHED,
            ),
            Wrong("1 token", "Every later step reads all earlier tokens, so all are kept.", Misconception.ONLY_NEWEST),
        ),
        controls={"num_prompt": num_prompt, "num_reply": num_chosen},
        scene=scene,
        value=value,
    )


def bytes_a_token(random: Random) -> Draft:
    model = random.choice([m for m in WELL_KNOWN if m.queries_per_kv_head > 1])
    right = model.kv_bytes_per_token(HALF_PRECISION)
    return Draft(
        kind="bytes a token",
        prompt=said(
            "{model.name} has {model.num_layers} layers, {model.num_heads} attention heads of {model.head_dim} "
            "numbers, and {model.num_kv_heads} key-value heads.\n"
            "Each number takes {num_bytes} bytes.\n"
            "How large are the keys and values of one token?",
            model=model,
            num_bytes=HALF_PRECISION,
        ),
        right=size_in_words(right),
        because="Two (a key and a value) for each layer and key-value head.",
        wrong=(
            Wrong(
                size_in_words(right * model.queries_per_kv_head),
                said(
                    "{model.queries_per_kv_head} attention heads share each key-value head, and what they share is "
                    "stored once.",
                    model=model,
                ),
                Misconception.QUERY_HEADS,
            ),
            Wrong(size_in_words(right // 2), "Keys and values are both stored.", Misconception.KEYS_ONLY),
            Wrong(
                size_in_words(right * 8),
                "16 bits are 2 bytes: this counts bits as bytes.",
                Misconception.BITS_FOR_BYTES,
            ),
        ),
        controls={"model": model.name},
    )


KINDS = (tokens_with_keys_and_values, bytes_a_token)
