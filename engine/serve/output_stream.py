"""Outputs from the engine's thread to a coroutine: the newest of each prompt. A slow reader skips to the latest."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from functools import partial

from engine.outputs import RequestOutput
from engine.serve.async_engine import OutputCallback


class OutputStream:
    """Create it in the event loop that reads it. It ends when each of `num_prompts` prompts has finished."""

    def __init__(self, num_prompts: int) -> None:
        self._loop = asyncio.get_running_loop()
        self._news = asyncio.Event()
        self._newest: dict[int, RequestOutput] = {}
        self._open = set(range(num_prompts))

    def callback(self, prompt: int) -> OutputCallback:
        """The `on_output` of the prompt with this index, to be called in the engine's thread."""
        return lambda output: self._from_thread(prompt, output)

    async def outputs(self) -> AsyncIterator[tuple[int, RequestOutput]]:
        """(index, newest output) of every prompt with a new output, until all have finished."""
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
