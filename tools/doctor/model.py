"""The backend, the cached model, and whether both work with the network off."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

from course.finding import Finding

if TYPE_CHECKING:
    from engine.outputs import RequestOutput

FETCH = (
    "Start the app once with the network on: it fetches 93 MB and keeps them. "
    "With a kit on a memory stick: `python install.py` from its folder."
)
PROMPT, ANSWER = "The capital of France is", "Paris"
NUM_TOKENS = 4
BROKEN_RUN = (
    "Run `python -m tools.doctor` in a terminal: the lines above this check say what failed. "
    "`pip install --force-reinstall -r requirements.txt` replaces packages that are damaged."
)


def check_backend() -> Finding:
    """The attention backend that would run, and why that one."""
    try:
        import torch

        from engine.model.device import NVIDIA_DRIVER, resolve_device, unused_gpu
        from kernels.backend import select_backend

        device = resolve_device("auto")
        backend = select_backend("auto", device)
        torch.ones(2, device=device).sum().item()
        notes = [_threads_of_numba()] if backend.spec.compiled_by_numba else []
        notes += [unused_gpu()] if unused_gpu() else []
        notes += [unused_cuda(torch.version.cuda, has_driver=NVIDIA_DRIVER.exists())]
    except Exception as error:
        fix = "`pip install --force-reinstall -r requirements.txt` replaces packages that are damaged."
        return Finding("Backend", f"The engine does not start ({type(error).__name__}: {error}).", fix)
    return Finding(
        "Backend", f"{backend.name} on {device.type}: {backend.reason}. {' '.join(filter(None, notes))}".rstrip()
    )


def unused_cuda(cuda: str | None, *, has_driver: bool) -> str:
    """A sentence when torch brought CUDA's libraries to a machine without an NVIDIA driver, else nothing.

    cuda: the CUDA version that torch is built for, None for another build.
    """
    if cuda is None or has_driver:
        return ""
    return (
        f"This torch brought the libraries of CUDA {cuda} for nothing: there is no NVIDIA driver here. In a new "
        "virtual environment, `pip install -r requirements-cpu.txt` leaves them out."
    )


def _threads_of_numba() -> str:
    from kernels.threads import is_thread_safe, threading_layer

    layer = f"Numba's threading layer is {threading_layer()}"
    return f"{layer}." if is_thread_safe() else f"{layer}: engines of one process take turns at its loops."


def check_model() -> Finding:
    """The embedded model's files against the sha256 recorded when they were converted."""
    from engine.model.weights.cache import cache_root, is_intact
    from engine.model.weights.embedded import CACHE_NAME

    folder = cache_root() / CACHE_NAME
    if not folder.exists():
        return Finding("Model", f"Not on this machine yet (looked in {folder.parent}).", FETCH)
    if not is_intact(folder):
        return Finding("Model", f"Damaged: the files in {folder} are not those that were written.", FETCH)
    return Finding("Model", f"Cached and whole, in {folder}.")


def check_offline() -> Finding:
    """Load the model and generate a few tokens while every connection to another machine is refused.

    The prompt has one right answer, so kernels that compute something else are found too.
    """
    started = time.perf_counter()
    try:
        with no_network():
            output = _generate()
    except Exception as error:
        fix = FETCH if isinstance(error, OSError) else BROKEN_RUN
        return Finding("Offline", f"The model does not run with the network off ({error}).", fix)
    if output.error:
        return Finding("Offline", f"The model does not run: {output.error}", BROKEN_RUN)
    text = output.outputs[0].text
    if ANSWER not in text:
        return Finding("Offline", f"The model wrote {text!r} after {PROMPT!r}, not {ANSWER}.", BROKEN_RUN)
    seconds = time.perf_counter() - started
    return Finding("Offline", f"With the network off, the model wrote {text!r} after {seconds:.1f} s.")


class NetworkRefusedError(OSError):
    """A connection to another machine was attempted within `no_network`."""


@contextmanager
def no_network() -> Iterator[None]:
    """Refuse connections of this whole process to other machines. Meant for a process of its own."""
    connect, connect_ex = socket.socket.connect, socket.socket.connect_ex

    def refuse(self: socket.socket, address: Any) -> None:
        if self.family in (socket.AF_INET, socket.AF_INET6) and address[0] not in ("127.0.0.1", "::1", "localhost"):
            raise NetworkRefusedError(f"it asked for {address[0]}")

    def checked_connect(self: socket.socket, address: Any) -> None:
        refuse(self, address)
        connect(self, address)

    def checked_connect_ex(self: socket.socket, address: Any) -> int:
        refuse(self, address)
        return connect_ex(self, address)

    with (
        patch.object(socket.socket, "connect", checked_connect),
        patch.object(socket.socket, "connect_ex", checked_connect_ex),
    ):
        yield


def _generate() -> RequestOutput:
    from engine import Engine, EngineConfig, SamplingParams

    engine = Engine(EngineConfig(block_size=4, num_blocks=16))
    params = SamplingParams(temperature=0.0, max_tokens=NUM_TOKENS)
    return engine.generate([PROMPT], params)[0]
