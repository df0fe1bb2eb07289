"""Send a prompt through a server's own API, and find the blocks it caused.

With the token ids that a server returns on request (`return_token_ids`), the blocks are those that hold exactly these
tokens. Without them, all that can be said is what was stored while the request ran, by whomever.
"""

from __future__ import annotations

import threading
import time
from concurrent.futures import Future
from dataclasses import dataclass

from engine.i18n import _
from engine.remote.http import HttpError, post_json
from engine.remote.radix_tree import chain_of
from engine.remote.server import RemoteServer
from engine.trace.cache_events import BlockHash, BlockStored

SECONDS_TO_ANSWER = 120.0
SECONDS_FOR_EVENTS = 1.0
"""Events of the last step may come after the answer."""
LONGEST_PROMPT, LONGEST_ANSWER, MOST_TOKENS = 20_000, 20_000, 512


@dataclass(frozen=True, slots=True)
class PromptRequest:
    """A prompt to send. as_chat: as a user's message, to which the server applies its chat template."""

    prompt: str
    max_tokens: int
    as_chat: bool = False

    @property
    def path(self) -> str:
        """The route of the API."""
        return "/v1/chat/completions" if self.as_chat else "/v1/completions"

    def body(self, model: str) -> dict[str, object]:
        """The JSON to post."""
        prompt = self.prompt[:LONGEST_PROMPT]
        asked = {"messages": [{"role": "user", "content": prompt}]} if self.as_chat else {"prompt": prompt}
        max_tokens = min(self.max_tokens, MOST_TOKENS)
        return {"model": model, "max_tokens": max_tokens, "temperature": 0, "return_token_ids": True, **asked}


@dataclass(frozen=True, slots=True)
class PromptResult:
    """A prompt that was answered between `first_step` and `last_step` of the server's history.

    token_ids: prompt and answer, or None when the server does not tell. stored: blocks it caused; found: blocks that
    were there before and hold its tokens. is_exact: whether by their tokens, else only by their time.
    """

    prompt: str
    text: str
    num_prompt_tokens: int | None
    token_ids: tuple[int, ...] | None
    first_step: int
    last_step: int
    stored: frozenset[BlockHash]
    found: frozenset[BlockHash]

    @property
    def is_exact(self) -> bool:
        """Whether the server returned token ids, so that `stored` and `found` are exact."""
        return self.token_ids is not None


def submit_prompt(server: RemoteServer, request: PromptRequest, api_key: str = "") -> Future[PromptResult]:
    """`ask` in a thread of its own, which ends with the program. The future may carry HttpError."""
    future: Future[PromptResult] = Future()

    def run() -> None:
        try:
            future.set_result(send_prompt(server, request, api_key))
        except Exception as error:
            future.set_exception(error)

    threading.Thread(target=run, name="prompt", daemon=True).start()
    return future


def send_prompt(server: RemoteServer, request: PromptRequest, api_key: str = "") -> PromptResult:
    """One answer at temperature 0. Raises HttpError with one plain sentence."""
    address = server.addresses.api
    if address is None:
        raise HttpError(_("There is no HTTP address to send a prompt to."))
    model = server.facts.model
    if model is None:
        raise HttpError(_("{address}/v1/models names no model, so no prompt can be sent.").format(address=address))
    before = server.last_step
    answer = post_json(address, request.path, request.body(model), seconds=SECONDS_TO_ANSWER, api_key=api_key)
    _wait_for_quiet(server)
    try:
        choice = answer["choices"][0]
        text = str(choice["message"]["content"] if request.as_chat else choice["text"])[:LONGEST_ANSWER]
    except (KeyError, IndexError, TypeError):
        raise HttpError(_("The answer from {address} has no text.").format(address=address)) from None
    ids = _token_ids(answer, choice)
    after = server.last_step
    stored, found = _blocks(server, ids, before, after)
    return PromptResult(request.prompt, text, _num_prompt_tokens(answer), ids, before, after, stored, found)


def _blocks(
    server: RemoteServer, ids: tuple[int, ...] | None, before: int, after: int
) -> tuple[frozenset[BlockHash], frozenset[BlockHash]]:
    """Hashes of the blocks that were stored for the prompt, and of those that were there before."""
    new = {
        event.block_hash
        for step in range(max(before, server.first_step) + 1, after + 1)
        for event in server.events_of(step)
        if isinstance(event, BlockStored)
    }
    if ids is None:
        return frozenset(new), frozenset()
    views = server.at(after).prefix_cache.ranks.values()
    mine = {block.block_hash for view in views for block in chain_of(view, ids)}
    return frozenset(mine & new), frozenset(mine - new)


def _wait_for_quiet(server: RemoteServer) -> None:
    """Until no message has come for a moment."""
    deadline = time.monotonic() + SECONDS_FOR_EVENTS
    seen = -1
    while seen != server.last_step and time.monotonic() < deadline:
        seen = server.last_step
        time.sleep(SECONDS_FOR_EVENTS / 4)


def _token_ids(answer: dict[str, object], choice: dict[str, object]) -> tuple[int, ...] | None:
    """Of prompt and answer. vLLM names the prompt's beside the choices of a chat, within those of a completion."""
    prompt, generated = choice.get("prompt_token_ids") or answer.get("prompt_token_ids"), choice.get("token_ids")
    if not isinstance(prompt, list) or not isinstance(generated, list):
        return None
    ids = (*prompt, *generated)
    return ids if all(type(i) is int for i in ids) else None


def _num_prompt_tokens(answer: dict[str, object]) -> int | None:
    usage = answer.get("usage")
    count = usage.get("prompt_tokens") if isinstance(usage, dict) else None
    return count if isinstance(count, int) else None
