"""For all tests: what is settled before anything imports torch or Triton, and that Hypothesis looks at no clock."""

from __future__ import annotations

import os

if "PYTEST_XDIST_WORKER" in os.environ:  # two workers share the machine (pyproject.toml): one thread for each
    os.environ.setdefault("OMP_NUM_THREADS", "1")

import torch
from hypothesis import HealthCheck, settings

settings.register_profile("patient", settings(), deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")  # how long an example takes says something about the machine only

if not torch.cuda.is_available():  # Triton's own library is made for the interpreter only if it is on at the import
    os.environ.setdefault("TRITON_INTERPRET", "1")
