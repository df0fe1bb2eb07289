"""All checks, in the order in which a machine is set up."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from engine.doctor import model, network, surroundings
from engine.doctor.finding import Finding

Announce = Callable[[str], object]
"""Told the name of a check when it begins."""


def checkup(port: int = network.PORT, begin: Announce = str) -> Iterator[Finding]:
    """One finding after the other, so that they can be shown as they come."""
    begin("Python")
    yield surroundings.check_python()
    begin("Packages")
    packages = surroundings.check_packages()
    yield packages
    if packages.is_ready:
        yield from _with_packages(begin)
    begin("Port")
    yield network.check_port(port)
    begin("Own address")
    yield network.check_own_address()
    begin("Browser")
    yield network.check_browser()


def _with_packages(begin: Announce) -> Iterator[Finding]:
    begin("Backend")
    import torch

    from engine.available_memory import available_memory
    from engine.weights_cache import cache_root
    from engine.weights_download import DISK_BYTES

    yield model.check_backend()
    begin("Model")
    cached = model.check_model()
    yield cached
    if not cached.is_ready:
        begin("Disk")
        yield surroundings.check_disk(cache_root(), DISK_BYTES)
    begin("Memory")
    yield surroundings.check_memory(available_memory(torch.device("cpu")))
    if cached.is_ready:
        begin("Offline")
        yield model.check_offline()
