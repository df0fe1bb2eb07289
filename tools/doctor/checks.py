"""All checks, in the order in which a machine is set up."""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Iterator
from functools import partial

from course.finding import Finding
from tools.doctor import model, network, system

Announce = Callable[[str], object]
"""Called with the name of a check when it starts."""


def run_checks(port: int = network.PORT, begin: Announce = str, skip: Collection[str] = ()) -> Iterator[Finding]:
    """Run the checks and yield each finding as it comes.

    skip: names of checks to leave out. A check that depends on another one is left out when that one is not ready, but
    run when it was skipped.
    """

    def make(name: str, check: Callable[[], Finding]) -> Generator[Finding, None, bool]:
        """Yields the finding, and returns whether checks that depend on it can be run."""
        if name in skip:
            return True
        begin(name)
        finding = check()
        yield finding
        return finding.is_ready

    yield from make("Python", system.check_python)
    if (yield from make("Packages", system.check_packages)) and (yield from make("Backend", model.check_backend)):
        is_cached = yield from make("Model", model.check_model)
        if not is_cached:
            yield from make("Disk", _check_disk)
        yield from make("Memory", _check_memory)
        if is_cached:
            yield from make("Offline", model.check_offline)
    yield from make("Port", partial(network.check_port, port))
    yield from make("Own address", network.check_own_address)
    yield from make("Browser", network.check_browser)


def _check_disk() -> Finding:
    from engine.model.weights.cache import cache_root
    from engine.model.weights.download import DISK_BYTES

    return system.check_disk(cache_root(), DISK_BYTES)


def _check_memory() -> Finding:
    import torch

    from engine.model.device import available_memory

    return system.check_memory(available_memory(torch.device("cpu")))
