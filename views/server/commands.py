"""Commands that a reader gives to a live engine. Executed again in order, they reproduce the whole run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.sampling_params import SamplingParams

if TYPE_CHECKING:
    from engine.engine import Engine  # it imports torch, and a page's frame is drawn before torch is loaded


@dataclass(frozen=True, slots=True)
class AddRequest:
    """Add a prompt as it was typed, after step `after_step`. `as_chat`: wrapped in the model's chat template."""

    after_step: int
    prompt: str
    params: SamplingParams
    as_chat: bool = False

    def execute(self, engine: Engine) -> str:
        """Returns the new request's id. Raises ValueError with a plain sentence when it is refused."""
        if not self.as_chat:
            return engine.add_request(self.prompt, self.params)
        chat = engine.tokenizer.encode_chat([{"role": "user", "content": self.prompt}])
        return engine.add_request(chat, self.params)


@dataclass(frozen=True, slots=True)
class AbortRequest:
    """End a request after step `after_step`; one that has ended is left alone."""

    after_step: int
    request_id: str

    def execute(self, engine: Engine) -> str:
        """Abort the request; returns its id."""
        engine.abort_request(self.request_id)
        return self.request_id


@dataclass(frozen=True, slots=True)
class ForkRequest:
    """Add a request that starts from the state of `request_id` after step `after_step`, with another seed."""

    after_step: int
    request_id: str
    seed: int

    def execute(self, engine: Engine) -> str:
        """Returns the new request's id. Raises ValueError with a plain sentence when it is refused."""
        return engine.fork_request(self.request_id, self.seed)


Command = AddRequest | AbortRequest | ForkRequest
