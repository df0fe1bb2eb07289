"""A run in a few hundred characters of an address: its engine, what was done to it and when, and how far it went.

    text = Recipe(config, commands, num_steps).to_text()
    Recipe.from_text(text)

Sampling is a pure function of seed, sample and position, so an engine that is treated alike says the same again.
The text is JSON, packed. What comes back in is foreign, so every field is checked and its size is bounded.
"""

from __future__ import annotations

import base64
import json
import zlib
from dataclasses import dataclass
from typing import Any

from engine.config import MAX_BLOCK_SIZE, EngineConfig
from engine.i18n import _
from engine.sampling_params import SamplingParams
from views.live.config import MAX_BLOCKS, live_config
from views.server.commands import AbortRequest, AddRequest, Command, ForkRequest

LONGEST_TEXT = 1800
"""Characters that a link can have in every browser and most messengers, less room for the settings."""
LONGEST_JSON = 60_000
MAX_COMMANDS = 200
MAX_STEPS = 5_000
MAX_TOKENS = 4_096
MAX_SAMPLES = 8
LONGEST_PROMPT = 2_000
MAX_SEED = 2**32
"""Forks count up from a seed of at most 2**31."""
VERSION = 1


class RecipeError(ValueError):
    """A link that carries no run that could be repeated. The message says so in plain words."""


@dataclass(frozen=True)
class Recipe:
    """`num_steps`: steps to make, executing each command after its step."""

    config: EngineConfig
    commands: tuple[Command, ...]
    num_steps: int

    def to_text(self) -> str | None:
        """For an address; None when it is longer than a link can be."""
        if len(self.commands) > MAX_COMMANDS or self.num_steps > MAX_STEPS:
            return None
        config = self.config
        document = [
            VERSION,
            [config.model, config.block_size, config.num_blocks, config.enable_prefix_caching, config.preemption_mode],
            [_command_to_list(command) for command in self.commands],
            self.num_steps,
        ]
        packed = zlib.compress(json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode("utf-8"), 9)
        text = base64.urlsafe_b64encode(packed).rstrip(b"=").decode("ascii")
        return text if len(text) <= LONGEST_TEXT else None

    @classmethod
    def from_text(cls, text: str) -> Recipe:
        """Raises RecipeError for anything that `to_text` cannot have written."""
        try:
            version, config, commands, num_steps = _unpacked(text)
            _require(version == VERSION)
            _require(isinstance(commands, list) and len(commands) <= MAX_COMMANDS)
            return cls(_config(config), tuple(map(_command_from_list, commands)), _whole(num_steps, 0, MAX_STEPS))
        except (ValueError, TypeError, zlib.error, RecursionError) as error:
            raise RecipeError(
                _("The run in this link cannot be read: the link is incomplete or was changed.")
            ) from error


def _unpacked(text: str) -> Any:
    _require(len(text) <= LONGEST_TEXT)
    packed = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    unpacker = zlib.decompressobj()
    document = unpacker.decompress(packed, LONGEST_JSON)
    _require(unpacker.eof)
    return json.loads(document)


def _config(fields: Any) -> EngineConfig:
    model, block_size, num_blocks, prefix_caching, preemption = fields
    _require(isinstance(model, str) and isinstance(prefix_caching, bool))
    size, count = _whole(block_size, 1, MAX_BLOCK_SIZE), _whole(num_blocks, 1, MAX_BLOCKS)
    return live_config(model, size, count, prefix_caching, preemption)


def _command_to_list(command: Command) -> list[Any]:
    match command:
        case AddRequest(step, prompt, params, as_chat):
            chosen = [params.temperature, params.max_tokens, params.n, params.beam_width, params.seed]
            return ["add", step, prompt, *chosen, params.ignore_eos, as_chat]
        case AbortRequest(step, request_id):
            return ["abort", step, request_id]
        case ForkRequest(step, request_id, seed):
            return ["fork", step, request_id, seed]


def _command_from_list(fields: Any) -> Command:
    match fields:
        case ["add", step, str(prompt), temperature, max_tokens, n, beam_width, seed, bool(ignore_eos), bool(as_chat)]:
            _require(len(prompt) <= LONGEST_PROMPT)
            params = SamplingParams(
                temperature=_number(temperature, 0, 2),
                max_tokens=_whole(max_tokens, 0, MAX_TOKENS),
                n=_whole(n, 1, MAX_SAMPLES),
                beam_width=_whole(beam_width, 1, MAX_SAMPLES),
                seed=_whole(seed, 0, MAX_SEED),
                ignore_eos=ignore_eos,
            )
            return AddRequest(_whole(step, 0, MAX_STEPS), prompt, params, as_chat)
        case ["abort", step, str(request_id)]:
            return AbortRequest(_whole(step, 0, MAX_STEPS), request_id)
        case ["fork", step, str(request_id), seed]:
            return ForkRequest(_whole(step, 0, MAX_STEPS), request_id, _whole(seed, 0, MAX_SEED))
    raise ValueError(_("no such command"))


def _whole(value: Any, low: int, high: int) -> int:
    _require(isinstance(value, int) and not isinstance(value, bool) and low <= value <= high)
    return int(value)


def _number(value: Any, low: float, high: float) -> float:
    _require(isinstance(value, int | float) and not isinstance(value, bool) and low <= value <= high)
    return float(value)


def _require(holds: bool) -> None:
    if not holds:
        raise ValueError(_("out of range"))
