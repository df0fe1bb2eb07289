"""An engine with its thread, its streams and its routes, as one ASGI app."""

from __future__ import annotations

import contextlib
import time
from collections.abc import AsyncIterator, Sequence

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import Response

from engine.engine import Engine
from engine.remote.publisher import Publisher
from engine.serve.api import Api
from engine.serve.async_engine import AsyncEngine, EventSink
from engine.serve.errors import ApiError
from engine.serve.kv_events import KVEventPublisher
from engine.serve.metrics import StatLogger


def make_app(
    engine: Engine,
    model: str,
    publisher: Publisher | None = None,
    allowed_hosts: Sequence[str] = ("*",),
    allowed_origins: Sequence[str] = (),
) -> Starlette:
    """The app. It owns the engine and the publisher from now on, and closes both when it ends.

    `allowed_hosts`: Host headers it answers to; with its own names only, DNS rebinding from other sites is refused.
    `allowed_origins`: sites whose pages may read its answers and send it JSON, such as `http://localhost:3000`.
    """
    statistics = StatLogger()
    sinks: list[EventSink] = [statistics] if publisher is None else [statistics, KVEventPublisher(publisher)]
    async_engine = AsyncEngine(engine, sinks)
    api = Api(
        engine.config, engine.tokenizer, engine.components.vocab_size, async_engine, statistics, model, int(time.time())
    )

    @contextlib.asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncIterator[None]:
        async_engine.start()
        yield
        async_engine.stop()
        if publisher is not None:
            publisher.close()

    middleware = [Middleware(TrustedHostMiddleware, allowed_hosts=list(allowed_hosts))]
    if allowed_origins:
        middleware.append(
            Middleware(
                CORSMiddleware, allow_origins=list(allowed_origins), allow_methods=["GET", "POST"], allow_headers=["*"]
            )
        )
    return Starlette(
        routes=api.routes(),
        lifespan=lifespan,
        exception_handlers={HTTPException: _in_standard_shape},
        middleware=middleware,
    )


def _in_standard_shape(_request: Request, error: Exception) -> Response:
    """Starlette's own refusals: no such route, wrong method."""
    assert isinstance(error, HTTPException)
    return ApiError(f"{error.detail}.", status=error.status_code).response()
