"""For all tests: what is settled before anything imports torch or Triton, and that Hypothesis looks at no clock."""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path

if "PYTEST_XDIST_WORKER" in os.environ:  # two workers share the machine (pyproject.toml): one thread for each
    os.environ.setdefault("OMP_NUM_THREADS", "1")

import pytest
import torch

if find_spec("hypothesis"):  # not on a machine that was lent for its card (benchmarks/gpu_day)
    from hypothesis import HealthCheck, settings

    settings.register_profile("patient", settings(), deadline=None, suppress_health_check=[HealthCheck.too_slow])
    settings.load_profile("patient")  # how long an example takes says something about the machine only

if not torch.cuda.is_available():  # Triton's own library is made for the interpreter only if it is on at the import
    os.environ.setdefault("TRITON_INTERPRET", "1")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Of a test that is marked `first_case`, each case but the first is slow."""
    seen: set[tuple[Path, str]] = set()
    for item in items:
        if item.get_closest_marker("first_case") is not None:
            test = (item.path, getattr(item, "originalname", item.name))
            if test in seen:
                item.add_marker(pytest.mark.slow)
            seen.add(test)
