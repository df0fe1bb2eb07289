"""Our own API server on a free port of this machine, in a thread of the tests."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import uvicorn
from openai import OpenAI

from engine import Engine, EngineConfig
from engine.remote.publisher import Publisher
from engine.serve.server import make_app
from tests.helpers.app_server import free_port

TINY = "tiny-random"
CONFIG = EngineConfig(
    model=TINY, block_size=4, num_blocks=48, max_num_seqs=8, max_num_batched_tokens=64, max_model_len=160,
    attention_backend="reference",
)  # fmt: skip


@dataclass(frozen=True)
class ServedEngine:
    url: str
    engine: Engine
    publisher: Publisher

    @property
    def client(self) -> OpenAI:
        return OpenAI(base_url=f"{self.url}/v1", api_key="none", max_retries=0)


@contextlib.contextmanager
def served_engine(
    config: EngineConfig = CONFIG, name: str = TINY, origins: Sequence[str] = ()
) -> Iterator[ServedEngine]:
    """A server that answers, and stops when the block ends."""
    engine = Engine(config)
    publisher = Publisher("tcp://127.0.0.1:0", "tcp://127.0.0.1:0")
    port = free_port()
    app = make_app(engine, name, publisher, ["127.0.0.1"], origins)
    server = uvicorn.Server(uvicorn.Config(app, host="127.0.0.1", port=port, log_level="error"))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    deadline = time.monotonic() + 20
    while not server.started:
        assert time.monotonic() < deadline and thread.is_alive(), "the API server did not come up"
        time.sleep(0.02)
    try:
        yield ServedEngine(f"http://127.0.0.1:{port}", engine, publisher)
    finally:
        server.should_exit = True
        thread.join(20)
