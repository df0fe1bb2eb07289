"""What a reader did to a live engine, in order: enough to do it all again, since the rest follows from it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.sampling_params import SamplingParams

if TYPE_CHECKING:
    from engine.engine import Engine  # it imports torch, and a page's frame is drawn before torch is loaded


@dataclass(frozen=True, slots=True)
class Added:
    """A prompt as it was typed, when step `after_step` was over. `as_chat`: put into the model's chat template."""

    after_step: int
    prompt: str
    params: SamplingParams
    as_chat: bool = False

    def perform(self, engine: Engine) -> str:
        """The id of the request. Raises ValueError with a plain sentence when it is refused."""
        if not self.as_chat:
            return engine.add_request(self.prompt, self.params)
        chat = engine.tokenizer.render_chat([{"role": "user", "content": self.prompt}])
        return engine.add_request(engine.tokenizer.encode(chat, add_special_tokens=False), self.params)


@dataclass(frozen=True, slots=True)
class Aborted:
    after_step: int
    request_id: str

    def perform(self, engine: Engine) -> str:
        engine.abort_request(self.request_id)
        return self.request_id


@dataclass(frozen=True, slots=True)
class Forked:
    """A new request that starts from where `request_id` was, and goes on with a seed of its own."""

    after_step: int
    request_id: str
    seed: int

    def perform(self, engine: Engine) -> str:
        """The id of the new request. Raises ValueError with a plain sentence when it is refused."""
        return engine.fork_request(self.request_id, self.seed)


Deed = Added | Aborted | Forked
