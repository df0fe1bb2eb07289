"""The routes: OpenAI's completions and chat completions, the model list, metrics, health, and emptying the cache."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field

from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from engine.admission import RequestRefusedError
from engine.config import EngineConfig
from engine.outputs import RequestOutput
from engine.serve.answers import DONE, Answer, event_of
from engine.serve.errors import ApiError
from engine.serve.mailbox import Mailbox
from engine.serve.statistics import Statistics, metrics_text
from engine.serve.stepper import EngineStoppedError, Stepper
from engine.serve.wishes import MAX_BODY, Wish, chat_wish, completion_wish, read_json
from engine.tokenizer import Tokenizer

SECONDS_BETWEEN_LOOKS_AT_THE_CLIENT = 0.2
Handler = Callable[[Request], Awaitable[Response]]


@dataclass
class Api:
    """What the routes need of a running engine."""

    config: EngineConfig
    tokenizer: Tokenizer
    stepper: Stepper
    statistics: Statistics
    model: str
    started: int

    def routes(self) -> list[Route]:
        return [
            Route("/v1/completions", _answering(self.completions), methods=["POST"]),
            Route("/v1/chat/completions", _answering(self.chat), methods=["POST"]),
            Route("/v1/models", self.models),
            Route("/metrics", self.metrics),
            Route("/health", _answering(self.health)),
            Route("/reset_prefix_cache", _answering(self.reset_prefix_cache), methods=["POST"]),
        ]

    async def completions(self, request: Request) -> Response:
        body = read_json(await _json_body(request))
        self._check_model(body.get("model"))
        return await self._answer(request, completion_wish(body, self.tokenizer))

    async def chat(self, request: Request) -> Response:
        body = read_json(await _json_body(request))
        self._check_model(body.get("model"))
        return await self._answer(request, chat_wish(body, self.tokenizer, self.config.max_model_len))

    async def models(self, _request: Request) -> Response:
        entry = {"id": self.model, "object": "model", "created": self.started, "owned_by": "paged-attention-visualizer"}
        return JSONResponse({"object": "list", "data": [entry | {"max_model_len": self.config.max_model_len}]})

    async def metrics(self, _request: Request) -> Response:
        counts, config = self.statistics.counts, self.config
        return PlainTextResponse(metrics_text(counts, self.model, config.num_blocks, config.block_size))

    async def health(self, _request: Request) -> Response:
        if self.stepper.problem:
            raise ApiError(self.stepper.problem, status=503)
        return PlainTextResponse("")

    async def reset_prefix_cache(self, _request: Request) -> Response:
        await asyncio.wrap_future(self.stepper.call(lambda engine: engine.clear_prefix_cache()))
        return PlainTextResponse("")

    def _check_model(self, name: object) -> None:
        if name is not None and name != self.model:
            raise ApiError(
                f"The model {str(name)[:100]!r} is not served here; this server has {self.model!r}.",
                status=404, param="model", code="model_not_found",
            )  # fmt: skip

    async def _answer(self, request: Request, wish: Wish) -> Response:
        run = await self._start(wish)
        answer = Answer(wish, self.model)
        if wish.stream:
            return _Stream(self._stream(run, answer), lambda: self._end(run))
        try:
            await _finished(request, run)
            return JSONResponse(answer.whole(run.results, self._num_cached(run)))
        finally:
            self._end(run)

    async def _start(self, wish: Wish) -> _Run:
        """Queue every prompt, or none of them."""
        run = _Run(Mailbox(len(wish.prompts)), [RequestOutput("")] * len(wish.prompts))
        try:
            for place, prompt in enumerate(wish.prompts):
                added = self.stepper.add(prompt, wish.params, run.mailbox.listener(place))
                run.request_ids.append(await asyncio.wrap_future(added))
        except BaseException:
            self._end(run)
            raise
        return run

    async def _stream(self, run: _Run, answer: Answer) -> AsyncIterator[str]:
        try:
            for event in answer.opening():
                yield event
            async for place, output in run.outputs():
                for event in answer.pieces(place, output):
                    yield event
            for event in answer.closing(run.results, self._num_cached(run)):
                yield event
        except ApiError as error:
            yield event_of(error.body())
            yield DONE

    def _num_cached(self, run: _Run) -> int:
        return sum(self.statistics.num_cached_tokens.get(name, 0) for name in run.request_ids)

    def _end(self, run: _Run) -> None:
        """Whatever is not finished gives its blocks back."""
        for request_id in run.request_ids:
            self.stepper.abort(request_id)
            self.statistics.num_cached_tokens.pop(request_id, None)


@dataclass
class _Run:
    """The engine's requests of one HTTP request, and the newest output of each."""

    mailbox: Mailbox
    results: list[RequestOutput]
    request_ids: list[str] = field(default_factory=list)

    async def outputs(self) -> AsyncIterator[tuple[int, RequestOutput]]:
        async for place, output in self.mailbox.outputs():
            if output.error:
                raise ApiError(output.error, status=500)
            self.results[place] = output
            yield place, output


class _Stream(StreamingResponse):
    """Server-sent events. `end` is called however it ends, also when the client goes before the first event."""

    def __init__(self, events: AsyncIterator[str], end: Callable[[], None]) -> None:
        super().__init__(events, media_type="text/event-stream", headers={"Cache-Control": "no-cache"})
        self._end = end

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._end()


async def _finished(request: Request, run: _Run) -> None:
    """Wait for every prompt's end, or for the client to go. Raises ApiError when the engine fails."""

    async def read_all() -> None:
        async for _news in run.outputs():
            pass

    reading = asyncio.ensure_future(read_all())
    try:
        while not reading.done():
            await asyncio.wait({reading}, timeout=SECONDS_BETWEEN_LOOKS_AT_THE_CLIENT)
            if not reading.done() and await request.is_disconnected():
                raise ApiError("The client has gone.", status=499)
        reading.result()
    finally:
        reading.cancel()
        with contextlib.suppress(asyncio.CancelledError, ApiError):
            await reading


async def _json_body(request: Request) -> bytes:
    """The body of a JSON request. Pages of other sites cannot send this content type without asking first."""
    kind = request.headers.get("content-type", "").split(";")[0].strip().lower()
    if kind != "application/json":
        raise ApiError("The content type must be application/json.", status=415)
    body = b""
    async for part in request.stream():
        body += part
        if len(body) > MAX_BODY:
            raise ApiError(f"The request has more than {MAX_BODY} bytes, the most that are read.", status=413)
    return body


def _answering(handler: Handler) -> Handler:
    """Errors become answers in the standard shape."""

    async def answered(request: Request) -> Response:
        try:
            return await handler(request)
        except ApiError as error:
            return error.response()
        except RequestRefusedError as error:
            return ApiError(str(error)).response()
        except EngineStoppedError as error:
            return ApiError(str(error), status=503).response()

    return answered
