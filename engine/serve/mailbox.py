"""From the engine's thread to a coroutine: the newest output of each prompt. A slow reader skips to the latest."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from functools import partial

from engine.outputs import RequestOutput
from engine.serve.stepper import Listener


class Mailbox:
    """Made in the event loop that reads it. Ends when each of `num_prompts` prompts has finished."""

    def __init__(self, num_prompts: int) -> None:
        self._loop = asyncio.get_running_loop()
        self._news = asyncio.Event()
        self._newest: dict[int, RequestOutput] = {}
        self._open = set(range(num_prompts))

    def listener(self, prompt: int) -> Listener:
        """For the engine's thread: outputs of the prompt at this place."""
        return lambda output: self._from_thread(prompt, output)

    async def outputs(self) -> AsyncIterator[tuple[int, RequestOutput]]:
        """Place and newest output of whatever prompt has news, until all have finished."""
        while self._open:
            await self._news.wait()
            self._news.clear()
            newest, self._newest = self._newest, {}
            for prompt, output in newest.items():
                if output.finished:
                    self._open.discard(prompt)
                yield prompt, output

    def _from_thread(self, prompt: int, output: RequestOutput) -> None:
        try:
            self._loop.call_soon_threadsafe(partial(self._put, prompt, output))
        except RuntimeError:
            return  # the loop is closed: nobody reads any more

    def _put(self, prompt: int, output: RequestOutput) -> None:
        self._newest[prompt] = output
        self._news.set()
