"""A real vLLM on this machine, for the opt-in test: `VLLM_PYTHON` runs it, `VLLM_MODEL` is a model folder."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from engine.remote.addresses import Address, events_address, http_address
from engine.remote.history import History
from engine.remote.subscriber import Subscriber
from tests.helpers.app_server import free_port

SECONDS_TO_START = 300
VARIABLES = {"VLLM_PYTHON", "VLLM_MODEL"}
WITHOUT_VLLM = "a real vLLM is opt-in: set VLLM_PYTHON to an interpreter that has it and VLLM_MODEL to a model folder"
MODEL_NAME = "model-under-test"
BLOCK_SIZE, NUM_BLOCKS = 32, 24
LISTENING = "0A"


@dataclass(frozen=True)
class VllmServer:
    api: Address
    events: Address
    replay: Address


@contextlib.contextmanager
def vllm_server(log: Path) -> Iterator[VllmServer]:
    """Started on ports of 127.0.0.1 only, and stopped with all its processes."""
    api, replay = (free_port() for _ in range(2))
    with log.open("wb") as output:
        process = subprocess.Popen(
            _command(api, replay), env=os.environ | {"VLLM_CPU_KVCACHE_SPACE": "1", "HF_HUB_OFFLINE": "1"},
            cwd=log.parent, stdout=output, stderr=subprocess.STDOUT, start_new_session=True,
        )  # fmt: skip
    try:
        _wait_until_it_answers(f"http://127.0.0.1:{api}/health", process, log)
        yield VllmServer(
            http_address(f"http://127.0.0.1:{api}"),
            _events_of(process.pid, {api, replay}),
            events_address(f"tcp://127.0.0.1:{replay}"),
        )
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)
        process.wait(60)


def _command(api: int, replay: int) -> list[str]:
    # vLLM listens only where its address has a star; with the star for the port it stays on this machine.
    events = {
        "enable_kv_cache_events": True, "publisher": "zmq",
        "endpoint": "tcp://127.0.0.1:*", "replay_endpoint": f"tcp://127.0.0.1:{replay}",
    }  # fmt: skip
    options = {
        "model": os.environ["VLLM_MODEL"], "served-model-name": MODEL_NAME, "host": "127.0.0.1", "port": api,
        "dtype": "bfloat16", "max-model-len": 512, "max-num-seqs": 4, "block-size": BLOCK_SIZE,
        "num-gpu-blocks-override": NUM_BLOCKS, "kv-events-config": json.dumps(events),
    }  # fmt: skip
    named = [text for name, value in options.items() for text in (f"--{name}", str(value))]
    return [os.environ["VLLM_PYTHON"], "-m", "vllm.entrypoints.openai.api_server", "--enforce-eager", *named]


def _wait_until_it_answers(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + SECONDS_TO_START
    while time.monotonic() < deadline and process.poll() is None:
        with contextlib.suppress(OSError), urllib.request.urlopen(url, timeout=2):
            return
        time.sleep(1)
    raise AssertionError(f"vLLM did not come up. It said:\n{log.read_text('utf-8', 'replace')[-4000:]}")


def _events_of(session: int, others: set[int]) -> Address:
    """The port at which a KV-event stream answers, among those that the server's processes listen at."""
    for port in sorted(_ports_of(session) - others):
        address = events_address(f"tcp://127.0.0.1:{port}")
        subscriber = Subscriber(History(), address)
        subscriber.start()
        time.sleep(0.7)
        is_it = subscriber.endpoints[0].is_connected
        subscriber.stop()
        if is_it:
            return address
    raise AssertionError("no KV-event stream answers at any port of vLLM")


def _ports_of(session: int) -> set[int]:
    """Ports of IPv4 that processes of a session listen at (Linux)."""
    inodes = set()
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            if int(stat.read_text().rsplit(")", 1)[1].split()[3]) == session:
                inodes |= {os.readlink(fd) for fd in (stat.parent / "fd").iterdir()}
    rows = [line.split() for line in Path("/proc/net/tcp").read_text("ascii").splitlines()[1:]]
    return {int(row[1].split(":")[1], 16) for row in rows if row[3] == LISTENING and f"socket:[{row[9]}]" in inodes}
