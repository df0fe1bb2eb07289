"""An engine with its thread, its streams and its routes, as one ASGI app."""

from __future__ import annotations

import contextlib
import time
from collections.abc import AsyncIterator, Sequence

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import Response

from engine.engine import Engine
from engine.remote.publisher import Publisher
from engine.serve.api import Api
from engine.serve.errors import ApiError
from engine.serve.kv_feed import KvFeed
from engine.serve.statistics import Statistics
from engine.serve.stepper import EventSink, Stepper


def make_app(
    engine: Engine, model: str, publisher: Publisher | None = None, allowed_hosts: Sequence[str] = ("*",)
) -> Starlette:
    """The app. It owns the engine and the publisher from now on, and closes both when it ends.

    `allowed_hosts`: names it answers to; with its own names only, no foreign page can reach it through a name of its.
    """
    statistics = Statistics()
    sinks: list[EventSink] = [statistics] if publisher is None else [statistics, KvFeed(publisher)]
    stepper = Stepper(engine, sinks)
    api = Api(engine.config, engine.tokenizer, stepper, statistics, model, int(time.time()))

    @contextlib.asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncIterator[None]:
        stepper.start()
        yield
        stepper.stop()
        if publisher is not None:
            publisher.close()

    return Starlette(
        routes=api.routes(),
        lifespan=lifespan,
        exception_handlers={HTTPException: _in_standard_shape},
        middleware=[Middleware(TrustedHostMiddleware, allowed_hosts=list(allowed_hosts))],
    )


def _in_standard_shape(_request: Request, error: Exception) -> Response:
    """Starlette's own refusals: no such route, wrong method."""
    assert isinstance(error, HTTPException)
    return ApiError(f"{error.detail}.", status=error.status_code).response()
