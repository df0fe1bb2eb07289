"""Admission checks: which requests are refused, with a sentence that says why. One bad request never stops others."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from engine.config import EngineConfig
from engine.i18n import _, counted
from engine.sampling_params import SamplingParams
from engine.trace.validation import shown, text, whole_numbers

MAX_REQUEST_ID_LENGTH = 64


class RequestRefusedError(ValueError):
    """This request cannot be served. The message names the limit; other requests are not touched."""


def request_id_text(request_id: Any) -> str:
    """An id that can stand in the log. Raises RequestRefusedError for one that is no text, or too long."""
    try:
        name = text(request_id)
    except ValueError:
        raise RequestRefusedError(
            _("A request id must be text; this one is {shown}.").format(shown=shown(request_id))
        ) from None
    if len(name) > MAX_REQUEST_ID_LENGTH:
        raise _odd_request_id(name)
    return name


def check_request_id(request_id: str, used: Collection[str]) -> None:
    """Raises RequestRefusedError for an id that is taken, empty or reserved."""
    if request_id in used:
        raise RequestRefusedError(
            _("Request id {request_id!r} is taken; choose another.").format(request_id=request_id)
        )
    if not request_id or "#" in request_id:
        raise _odd_request_id(request_id)


def _odd_request_id(request_id: str) -> RequestRefusedError:
    return RequestRefusedError(
        _("A request id has 1 to {max_request_id_length} characters and no '#'; this one is {shown}.").format(
            max_request_id_length=MAX_REQUEST_ID_LENGTH, shown=shown(request_id)
        )
    )


def checked_params(params: Any) -> SamplingParams:
    """The params, or the defaults for None. Raises RequestRefusedError for anything else."""
    if params is not None and not isinstance(params, SamplingParams):
        raise RequestRefusedError(_("params must be SamplingParams; it is {shown}.").format(shown=shown(params)))
    return params or SamplingParams()


def checked_token_ids(prompt: Any) -> list[int]:
    """A prompt that is no text as a list of token ids; NumPy's and torch's whole numbers become Python's.

    Raises RequestRefusedError for anything else.
    """
    try:
        return whole_numbers(prompt)
    except ValueError:
        raise RequestRefusedError(
            _("A prompt must be text or a list of token ids; it is {shown}.").format(shown=shown(prompt))
        ) from None


def check_prompt(
    config: EngineConfig, vocab_size: int, prompt_token_ids: Sequence[int], params: SamplingParams
) -> None:
    """Raises RequestRefusedError when this prompt with these params can never run in this engine."""
    _check_tokens(vocab_size, prompt_token_ids)
    _check_length(config, len(prompt_token_ids), params)
    _check_num_seqs(config, params)
    _check_blocks(config, len(prompt_token_ids), params)


def max_blocks_needed(config: EngineConfig, num_prompt_tokens: int, params: SamplingParams) -> int:
    """Blocks this request holds at its largest, alone in the pool.

    The last generated token's keys and values are never written. Samples and beams share the full prompt blocks
    and may differ in everything behind; the scheduler sees to it that they do share those. Samples of the
    `prefix_cache` way compute the prompt's last token each, so a prompt block that ends with it is not shared.
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
        raise RequestRefusedError(_("The prompt is empty: at least 1 token is needed."))
    outside = next((t for t in prompt_token_ids if not 0 <= t < vocab_size), None)
    if outside is not None:
        raise RequestRefusedError(
            _("Token id {outside} is outside the vocabulary of 0 to {vocab_size}.").format(
                outside=outside, vocab_size=vocab_size - 1
            )
        )


def _check_length(config: EngineConfig, num_prompt_tokens: int, params: SamplingParams) -> None:
    room = config.max_model_len - min(1, params.max_tokens)
    if num_prompt_tokens > room:
        raise RequestRefusedError(
            counted(
                "The prompt has {n} token; with max_model_len {max_model_len} it may have at most {room}.",
                "The prompt has {n} tokens; with max_model_len {max_model_len} it may have at most {room}.",
                num_prompt_tokens,
                max_model_len=config.max_model_len,
                room=room,
            )
        )


def _check_num_seqs(config: EngineConfig, params: SamplingParams) -> None:
    if params.num_sequences > config.max_num_seqs:
        what = "beam_width" if params.uses_beam_search else "n"
        raise RequestRefusedError(
            counted(
                "{what} is {num_sequences}; max_num_seqs allows {n} sequence at once.",
                "{what} is {num_sequences}; max_num_seqs allows {n} sequences at once.",
                config.max_num_seqs,
                what=what,
                num_sequences=params.num_sequences,
            )
        )


def _check_blocks(config: EngineConfig, num_prompt_tokens: int, params: SamplingParams) -> None:
    need = max_blocks_needed(config, num_prompt_tokens, params)
    if need > config.num_blocks:
        raise RequestRefusedError(
            counted(
                "It may need {n} block of {block_size}; the pool has {num_blocks}. Ask for fewer "
                "tokens or samples, or make the pool larger.",
                "It may need {n} blocks of {block_size}; the pool has {num_blocks}. Ask for fewer "
                "tokens or samples, or make the pool larger.",
                need,
                block_size=config.block_size,
                num_blocks=config.num_blocks,
            )
        )
