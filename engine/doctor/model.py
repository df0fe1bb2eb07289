"""The backend, the cached model, and whether both work with the network off."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from engine.doctor.finding import Finding

FETCH = (
    "Start the app once with the network on: it fetches 93 MB and keeps them. "
    "With a kit on a memory stick: `python install.py` from its folder."
)
PROMPT = "The capital of France is"
NUM_TOKENS = 4


def check_backend() -> Finding:
    """Which attention backend would run, and why that one."""
    try:
        from engine.loading import resolve_device
        from kernels.backend import select_backend

        device = resolve_device("auto")
        backend = select_backend("auto", device)
    except Exception as error:
        return Finding("Backend", f"The engine cannot be imported ({error}).", "Install the packages first.")
    return Finding("Backend", f"{backend.name} on {device.type}: {backend.reason}.")


def check_model() -> Finding:
    """The embedded model, every byte against the sha256 that was noted when it was converted."""
    from engine.weights_cache import cache_root, is_intact
    from engine.weights_embedded import CACHE_NAME

    folder = cache_root() / CACHE_NAME
    if not folder.exists():
        return Finding("Model", f"Not on this machine yet (looked in {folder.parent}).", FETCH)
    if not is_intact(folder):
        return Finding("Model", f"Damaged: the files in {folder} are not those that were written.", FETCH)
    return Finding("Model", f"Cached and whole, in {folder}.")


def check_offline() -> Finding:
    """Load the model and write a few tokens while every connection to another machine is refused."""
    started = time.perf_counter()
    try:
        with no_network():
            text = _write_a_little()
    except Exception as error:
        fix = FETCH if isinstance(error, OSError) else "Mend what is not ready above, then try again."
        return Finding("Offline", f"The model does not run with the network off ({error}).", fix)
    seconds = time.perf_counter() - started
    return Finding("Offline", f"With the network off, the model wrote {text!r} after {seconds:.1f} s.")


class NetworkRefusedError(OSError):
    """A connection to another machine was tried while there should be none."""


@contextmanager
def no_network() -> Iterator[None]:
    """No socket of this process reaches another machine. For a process of its own: others would feel it too."""
    connect = socket.socket.connect

    def refuse(self: socket.socket, address: Any) -> None:
        if self.family in (socket.AF_INET, socket.AF_INET6) and address[0] not in ("127.0.0.1", "::1", "localhost"):
            raise NetworkRefusedError(f"it asked for {address[0]}")
        connect(self, address)

    socket.socket.connect = refuse  # type: ignore[method-assign, assignment]
    try:
        yield
    finally:
        socket.socket.connect = connect  # type: ignore[method-assign]


def _write_a_little() -> str:
    from engine import Engine, EngineConfig, SamplingParams

    engine = Engine(EngineConfig(block_size=4, num_blocks=16))
    params = SamplingParams(temperature=0.0, max_tokens=NUM_TOKENS)
    return engine.generate([PROMPT], params)[0].outputs[0].text
