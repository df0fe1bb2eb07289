"""A second process in which the parts run: one that hangs is killed, one that crashes is replaced, the rest go on.

Parts share it, because importing torch and waking a GPU take seconds. After a fault in a kernel the process can use
the GPU no more, so it is replaced then, too.
"""

from __future__ import annotations

import multiprocessing
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from importlib import import_module
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.gpu_day.findings import Finding, NotHereError, Outcome
from benchmarks.gpu_day.parts import Part

if TYPE_CHECKING:
    from benchmarks.gpu_day.context import Context

_SPAWN = multiprocessing.get_context("spawn")
SECONDS_TO_END = 5.0


@dataclass(frozen=True)
class Settings:
    """What the process has to know: where files go, which sizes, by name, and the module that makes the context."""

    out: Path
    sizes: str
    context_module: str = "benchmarks.gpu_day.context"


class ProcessWorker:
    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._process: multiprocessing.process.BaseProcess | None = None
        self._connection: Connection | None = None

    def run(self, part: Part, seconds: float, on_finding: Callable[[Finding], None]) -> Outcome:
        """See budget.Worker."""
        connection = self._connected()
        started = time.monotonic()
        try:
            connection.send((part.module, seconds))
            while connection.poll(max(0.0, started + seconds - time.monotonic())):
                message: Finding | Outcome = connection.recv()
                if not isinstance(message, Outcome):
                    on_finding(message)
                    continue
                if message.has_lost_device:
                    self.close()
                return message
        except (EOFError, OSError):
            code = self._end()
            return Outcome("failed", f"its process ended with exit code {code}", time.monotonic() - started)
        self._end()
        return Outcome("stopped", f"it was not done after {seconds:.0f} s", time.monotonic() - started)

    def close(self) -> None:
        """End the process, the last part being done."""
        if self._connection is not None:
            self._connection.close()
        self._end(patience=SECONDS_TO_END)

    def _connected(self) -> Connection:
        if self._connection is None:
            self._connection, theirs = _SPAWN.Pipe()
            self._process = _SPAWN.Process(target=serve, args=(theirs, self._settings), daemon=False)
            self._process.start()
            theirs.close()  # so that the end of the process is the end of the pipe
        return self._connection

    def _end(self, patience: float = 0.1) -> int | None:
        """The exit code; negative for a signal."""
        process, self._process, self._connection = self._process, None, None
        if process is None:
            return None
        process.join(patience)
        if process.is_alive():
            process.kill()
            process.join()
        return process.exitcode


def serve(connection: Connection, settings: Settings) -> None:
    """Run the parts that are asked for, until nobody asks any more."""
    context = import_module(settings.context_module).context_of(settings.out, settings.sizes)
    while True:
        try:
            module, seconds = connection.recv()
        except EOFError:
            return
        context.deadline = time.monotonic() + seconds
        for message in messages_of(module, context):
            connection.send(released(message, context) if isinstance(message, Outcome) else message)


def messages_of(module: str, context: Context) -> Iterator[Finding | Outcome]:
    """The findings of a part as they come, then its outcome."""
    started = time.monotonic()
    try:
        yield from import_module(module).run(context)
    except NotHereError as reason:
        yield Outcome("not here", str(reason), time.monotonic() - started)
    except Exception as error:
        from kernels.device_lost import DeviceLostError, is_device_lost

        is_lost = isinstance(error, DeviceLostError) or is_device_lost(error)
        yield Outcome("failed", _in_a_line(error), time.monotonic() - started, traceback.format_exc(), is_lost)
    else:
        yield Outcome("done", "", time.monotonic() - started)


def released(outcome: Outcome, context: Context) -> Outcome:
    """The outcome, after the part's memory is given back. A device that cannot do even that is lost."""
    try:
        context.release()
    except Exception:
        return replace(outcome, has_lost_device=True)
    return outcome


def _in_a_line(error: Exception) -> str:
    """What happened and where, as one line."""
    first = (str(error).strip().splitlines() or ["no message"])[0]
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__}: {first} ({Path(frame.filename).name}, line {frame.lineno})"
