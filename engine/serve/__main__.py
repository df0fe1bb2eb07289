"""Serve a model as vLLM does, from this engine: any OpenAI client can use it, any KV-event reader can watch it.

python -m engine.serve
python -m engine.serve --model tiny-random --port 8100 --num-blocks 64 --block-size 4

It listens on this machine only, unless `--host` says otherwise. Ctrl-C ends it.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Sequence

import uvicorn

from engine.config import EngineConfig
from engine.engine import Engine
from engine.model.load_report import ModelLoadError
from engine.remote.publisher import Publisher, PublishError
from engine.runner import ModelRunner
from engine.serve.server import make_app

HOST = "127.0.0.1"
LOOPBACK_NAMES = (HOST, "localhost")
SECONDS_TO_FINISH = 3
"""What open streams get when the server is told to stop."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve until told to stop. Returns the exit status: 0, or 1 with a sentence on standard error."""
    options = _options(arguments)
    try:
        config = _config(options)
        publisher = None if options.no_events else Publisher(options.events, options.replay)
        engine = Engine(config)
        if isinstance(engine.components.runner, ModelRunner):
            engine.components.runner.capture_model()
    except (ValueError, MemoryError, ModelLoadError, PublishError) as error:
        print(error, file=sys.stderr)
        return 1
    names = LOOPBACK_NAMES if options.host in LOOPBACK_NAMES else ("*",)
    app = make_app(engine, options.served_model_name or options.model, publisher, names, options.allowed_origins)
    print(f"Serving {options.model} at http://{options.host}:{options.port}/v1", file=sys.stderr, flush=True)
    if publisher is not None:
        print(f"KV events at {publisher.endpoint}, old ones again at {publisher.replay_endpoint}", file=sys.stderr)
    uvicorn.run(
        app, host=options.host, port=options.port, log_level="warning", timeout_graceful_shutdown=SECONDS_TO_FINISH
    )
    return 0


def _config(options: argparse.Namespace) -> EngineConfig:
    return EngineConfig(
        model=options.model,
        block_size=options.block_size,
        num_blocks=options.num_blocks,
        max_num_seqs=options.max_num_seqs,
        max_num_batched_tokens=options.max_num_batched_tokens,
        max_model_len=options.max_model_len,
        enable_prefix_caching=not options.no_prefix_caching,
        batch_invariant=options.batch_invariant,
        enforce_eager=options.enforce_eager,
        attention_backend=options.attention_backend,
        device=options.device,
        dtype=options.dtype,
    )


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    default = EngineConfig()
    parser = argparse.ArgumentParser(prog="python -m engine.serve", description="An OpenAI-compatible server.")
    parser.add_argument("--model", default=default.model, help="a name this project knows, a hub id, or a folder")
    parser.add_argument("--served-model-name", help="what clients call it (default: the same)")
    parser.add_argument("--host", default=HOST, help=f"default {HOST}: this machine only")
    parser.add_argument("--port", type=int, default=8000)
    parser.add_argument(
        "--allowed-origins", nargs="*", type=_origin, default=(), metavar="ORIGIN",
        help="sites whose pages may use it from a browser, such as http://localhost:3000; * is every site",
    )  # fmt: skip
    parser.add_argument("--events", default=f"tcp://{HOST}:5557", help="where KV events are published")
    parser.add_argument("--replay", default=f"tcp://{HOST}:5558", help="where old KV events are sent again")
    parser.add_argument("--no-events", action="store_true", help="publish no KV events")
    parser.add_argument("--block-size", type=int, default=default.block_size)
    parser.add_argument("--num-blocks", type=int, default=256)
    parser.add_argument("--max-num-seqs", type=int, default=default.max_num_seqs)
    parser.add_argument("--max-num-batched-tokens", type=int, default=default.max_num_batched_tokens)
    parser.add_argument("--max-model-len", type=int, default=1024)
    parser.add_argument("--no-prefix-caching", action="store_true")
    parser.add_argument("--batch-invariant", action="store_true", help="same bits in any batch; slower, CPU only")
    parser.add_argument("--enforce-eager", action="store_true", help="no CUDA graphs: kernels are launched one by one")
    parser.add_argument("--attention-backend", default=default.attention_backend)
    parser.add_argument("--device", default=default.device)
    parser.add_argument("--dtype", default=default.dtype)
    return parser.parse_args(arguments)


def _origin(text: str) -> str:
    """As browsers write it; anything else would never match and open nothing."""
    if text != "*" and not re.fullmatch(r"https?://[^/\s]+", text):
        raise argparse.ArgumentTypeError(f"{text!r} is no origin: write it like http://localhost:3000, without a path")
    return text


if __name__ == "__main__":
    raise SystemExit(main())
