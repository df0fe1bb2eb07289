"""The routes: OpenAI's completions and chat completions, and vLLM's for tokens, metrics, health and the cache."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field, replace

from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from engine.admission import RequestRefusedError, check_prompt
from engine.config import EngineConfig
from engine.engine import Engine
from engine.model.tokenizer import Tokenizer
from engine.outputs import RequestOutput
from engine.serve.async_engine import AsyncEngine, EngineStoppedError
from engine.serve.errors import ApiError
from engine.serve.fields import LONGEST_NAME, DetokenizeFields, TokenizeFields, read_fields
from engine.serve.metrics import StatLogger, metrics_text
from engine.serve.output_stream import OutputStream
from engine.serve.protocol import MAX_BODY, CompletionRequest, parse_chat_request, parse_completion_request, read_json
from engine.serve.responses import DONE, CompletionResponse, event_of

SECONDS_BETWEEN_DISCONNECT_CHECKS = 0.2
Handler = Callable[[Request], Awaitable[Response]]


@dataclass
class Api:
    """What the routes need of a running engine."""

    config: EngineConfig
    tokenizer: Tokenizer
    vocab_size: int
    async_engine: AsyncEngine
    statistics: StatLogger
    model: str
    started: int

    def routes(self) -> list[Route]:
        """Every route of the server."""
        return [
            Route("/v1/completions", _with_error_responses(self.completions), methods=["POST"]),
            Route("/v1/chat/completions", _with_error_responses(self.chat), methods=["POST"]),
            Route("/v1/models", self.models),
            Route("/v1/models/{name:path}", _with_error_responses(self.one_model)),
            Route("/tokenize", _with_error_responses(self.tokenize), methods=["POST"]),
            Route("/detokenize", _with_error_responses(self.detokenize), methods=["POST"]),
            Route("/metrics", self.metrics),
            Route("/health", _with_error_responses(self.health)),
            Route("/reset_prefix_cache", _with_error_responses(self.reset_prefix_cache), methods=["POST"]),
        ]

    async def completions(self, request: Request) -> Response:
        """POST /v1/completions."""
        body = read_json(await _json_body(request))
        self._check_model(body.get("model"))
        return await self._respond(request, parse_completion_request(body, self.tokenizer, self.config))

    async def chat(self, request: Request) -> Response:
        """POST /v1/chat/completions."""
        body = read_json(await _json_body(request))
        self._check_model(body.get("model"))
        return await self._respond(request, parse_chat_request(body, self.tokenizer, self.config))

    async def tokenize(self, request: Request) -> Response:
        """POST /tokenize: the token ids of a text."""
        body = read_json(await _json_body(request))
        self._check_model(body.get("model"))
        fields = read_fields(body, TokenizeFields)
        tokens = self.tokenizer.encode(fields.prompt, add_special_tokens=fields.add_special_tokens)
        return JSONResponse({"count": len(tokens), "max_model_len": self.config.max_model_len, "tokens": tokens})

    async def detokenize(self, request: Request) -> Response:
        """POST /detokenize: the text of token ids."""
        body = read_json(await _json_body(request))
        self._check_model(body.get("model"))
        fields = read_fields(body, DetokenizeFields)
        foreign = next((token for token in fields.tokens if token >= self.tokenizer.vocab_size), None)
        if foreign is not None:
            raise ApiError(f"tokens holds {foreign}; this model's ids end at {self.tokenizer.vocab_size - 1}.",
                           param="tokens")  # fmt: skip
        text = self.tokenizer.decode(fields.tokens, skip_special_tokens=fields.skip_special_tokens)
        return JSONResponse({"prompt": text})

    async def models(self, _request: Request) -> Response:
        """GET /v1/models: the one model that is served."""
        return JSONResponse({"object": "list", "data": [self._entry()]})

    async def one_model(self, request: Request) -> Response:
        """GET /v1/models/{model}."""
        self._check_model(request.path_params["name"])
        return JSONResponse(self._entry())

    async def metrics(self, _request: Request) -> Response:
        """GET /metrics: Prometheus text."""
        counts, config = self.statistics.counts, self.config
        return PlainTextResponse(metrics_text(counts, self.model, config.num_blocks, config.block_size))

    async def health(self, _request: Request) -> Response:
        """GET /health: 200, or an error once the engine has stopped."""
        if self.async_engine.problem:
            raise ApiError(self.async_engine.problem, status=503)
        return PlainTextResponse("")

    async def reset_prefix_cache(self, _request: Request) -> Response:
        """POST /reset_prefix_cache: evict everything from the prefix cache."""
        await asyncio.wrap_future(self.async_engine.call(lambda engine: engine.clear_prefix_cache()))
        return PlainTextResponse("")

    def _entry(self) -> dict[str, object]:
        owner, length = "paged-attention-visualizer", self.config.max_model_len
        entry = {"id": self.model, "object": "model", "created": self.started, "owned_by": owner}
        return entry | {"max_model_len": length}

    def _check_model(self, name: object) -> None:
        if isinstance(name, str) and name != self.model:
            raise ApiError(
                f"The model {name[:LONGEST_NAME]!r} is not served here; this server has {self.model!r}.",
                status=404, param="model", code="model_not_found",
            )  # fmt: skip

    def _check_fit(self, completion: CompletionRequest) -> None:
        """Raises ApiError when this engine can never serve the request, naming the first field that is too large

        with the smallest possible values of the fields after it.
        """
        one = replace(completion.params, n=1, max_tokens=min(completion.params.max_tokens, 1))
        several = replace(one, n=completion.params.n)
        for field_name, params in (
            (completion.prompt_field, one),
            ("n", several),
            (completion.limit_field, completion.params),
        ):
            for prompt in completion.prompts:
                try:
                    check_prompt(self.config, self.vocab_size, prompt, params)
                except RequestRefusedError as error:
                    raise ApiError(str(error), param=field_name) from None

    async def _respond(self, request: Request, completion: CompletionRequest) -> Response:
        self._check_fit(completion)
        active = await self._start(completion)
        response = CompletionResponse(completion, self.model)
        if completion.stream:
            return _Stream(self._stream(active, response), lambda: self._end(active))
        try:
            await _wait_until_finished(request, active)
            return JSONResponse(response.whole(active.results, self._num_cached(active)))
        finally:
            self._end(active)

    async def _start(self, completion: CompletionRequest) -> _ActiveRequest:
        """Queue every prompt, or none of them."""
        active = _ActiveRequest(OutputStream(len(completion.prompts)), [RequestOutput("")] * len(completion.prompts))
        try:
            for place, prompt in enumerate(completion.prompts):
                added = self.async_engine.add(prompt, completion.params, active.output_stream.callback(place))
                active.request_ids.append(await asyncio.wrap_future(added))
        except BaseException:
            self._end(active)
            raise
        return active

    async def _stream(self, active: _ActiveRequest, response: CompletionResponse) -> AsyncIterator[str]:
        try:
            for event in response.first_chunks():
                yield event
            async for place, output in active.outputs():
                for event in response.chunks(place, output):
                    yield event
            for event in response.last_chunks(active.results, self._num_cached(active)):
                yield event
        except ApiError as error:
            yield event_of(error.body())
            yield DONE

    def _num_cached(self, active: _ActiveRequest) -> int:
        return sum(self.statistics.num_cached_tokens.get(name, 0) for name in active.request_ids)

    def _end(self, active: _ActiveRequest) -> None:
        """Abort whatever is not finished, and free its blocks."""

        def forget(_engine: Engine) -> None:
            for request_id in active.request_ids:
                self.statistics.num_cached_tokens.pop(request_id, None)

        for request_id in active.request_ids:
            self.async_engine.abort(request_id)
        self.async_engine.call(forget)  # after the last step that counts them


@dataclass
class _ActiveRequest:
    """The engine's requests that belong to one HTTP request, and the newest output of each."""

    output_stream: OutputStream
    results: list[RequestOutput]
    request_ids: list[str] = field(default_factory=list)

    async def outputs(self) -> AsyncIterator[tuple[int, RequestOutput]]:
        async for place, output in self.output_stream.outputs():
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


async def _wait_until_finished(request: Request, active: _ActiveRequest) -> None:
    """Wait for every prompt's end, or for the client to go. Raises ApiError when the engine fails."""

    async def read_all() -> None:
        async for _output in active.outputs():
            pass

    reading = asyncio.ensure_future(read_all())
    try:
        while not reading.done():
            await asyncio.wait({reading}, timeout=SECONDS_BETWEEN_DISCONNECT_CHECKS)
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


def _with_error_responses(handler: Handler) -> Handler:
    """Turns errors into responses of the standard shape."""

    async def wrapped(request: Request) -> Response:
        try:
            return await handler(request)
        except ApiError as error:
            return error.response()
        except EngineStoppedError as error:
            return ApiError(str(error), status=503).response()

    return wrapped
