"""All checks, in the order in which a machine is set up."""

from __future__ import annotations

from collections.abc import Iterator

from engine.doctor import model, network, surroundings
from engine.doctor.finding import Finding


def checkup(port: int = network.PORT) -> Iterator[Finding]:
    """One finding after the other, so that they can be shown as they come."""
    yield surroundings.check_python()
    packages = surroundings.check_packages()
    yield packages
    if packages.is_ready:
        yield from _with_packages()
    yield network.check_port(port)
    yield network.check_own_address()
    yield network.check_browser()


def _with_packages() -> Iterator[Finding]:
    import torch

    from engine.available_memory import available_memory
    from engine.weights_cache import cache_root
    from engine.weights_download import DISK_BYTES

    yield model.check_backend()
    cached = model.check_model()
    yield cached
    if not cached.is_ready:
        yield surroundings.check_disk(cache_root(), DISK_BYTES)
    yield surroundings.check_memory(available_memory(torch.device("cpu")))
    if cached.is_ready:
        yield model.check_offline()
