"""What is refused at the door, with the sentence that says why. One bad request never stops the others."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from engine.config import EngineConfig
from engine.events import plural
from engine.sampling_params import SamplingParams

MAX_REQUEST_ID_LENGTH = 64


class RequestRefusedError(ValueError):
    """This request cannot be served. The message names the limit; other requests are not touched."""


def check_request_id(request_id: str, used: Collection[str]) -> None:
    """Raises RequestRefusedError for an id that is taken, empty, too long or reserved."""
    if request_id in used:
        raise RequestRefusedError(f"Request id {request_id!r} is taken; choose another.")
    if not 0 < len(request_id) <= MAX_REQUEST_ID_LENGTH or "#" in request_id:
        raise RequestRefusedError(
            f"A request id has 1 to {MAX_REQUEST_ID_LENGTH} characters and no '#'; this one is {request_id[:80]!r}."
        )


def check_prompt(
    config: EngineConfig, vocab_size: int, prompt_token_ids: Sequence[int], params: SamplingParams
) -> None:
    """Raises RequestRefusedError when this prompt with these params can never run in this engine."""
    _check_tokens(vocab_size, prompt_token_ids)
    _check_length(config, len(prompt_token_ids), params)
    _check_seats(config, params)
    _check_blocks(config, len(prompt_token_ids), params)


def max_blocks_needed(config: EngineConfig, num_prompt_tokens: int, params: SamplingParams) -> int:
    """Blocks this request holds at its largest, alone in the pool.

    The last generated token's keys and values are never written. Samples and beams share the full prompt blocks
    and may differ in everything behind; samples of the `prefix_cache` way start alone and share what they find.
    """
    num_tokens = min(num_prompt_tokens + params.max_tokens, config.max_model_len)
    num_written = max(num_prompt_tokens, num_tokens - 1)
    total = -(-num_written // config.block_size)
    if config.parallel_sampling == "prefix_cache" and not params.uses_beam_search:
        shared = max(0, num_prompt_tokens - 1) // config.block_size
    else:
        shared = num_prompt_tokens // config.block_size
    return shared + params.num_sequences * (total - shared)


def _check_tokens(vocab_size: int, prompt_token_ids: Sequence[int]) -> None:
    if not prompt_token_ids:
        raise RequestRefusedError("The prompt is empty: at least 1 token is needed.")
    outside = next((t for t in prompt_token_ids if not 0 <= t < vocab_size), None)
    if outside is not None:
        raise RequestRefusedError(f"Token id {outside} is outside the vocabulary of 0 to {vocab_size - 1}.")


def _check_length(config: EngineConfig, num_prompt_tokens: int, params: SamplingParams) -> None:
    room = config.max_model_len - min(1, params.max_tokens)
    if num_prompt_tokens > room:
        raise RequestRefusedError(
            f"The prompt has {plural(num_prompt_tokens, 'token')}; with max_model_len {config.max_model_len} "
            f"it may have at most {room}."
        )


def _check_seats(config: EngineConfig, params: SamplingParams) -> None:
    if params.num_sequences > config.max_num_seqs:
        what = "beam_width" if params.uses_beam_search else "n"
        raise RequestRefusedError(
            f"{what} is {params.num_sequences}; max_num_seqs allows {config.max_num_seqs} sequences at once."
        )


def _check_blocks(config: EngineConfig, num_prompt_tokens: int, params: SamplingParams) -> None:
    need = max_blocks_needed(config, num_prompt_tokens, params)
    if need > config.num_blocks:
        raise RequestRefusedError(
            f"It may need {plural(need, 'block')} of {config.block_size}; the pool has {config.num_blocks}. "
            "Ask for fewer tokens or samples, or make the pool larger."
        )
