"""For all tests: what must be settled in the environment before anything imports torch or Triton."""

from __future__ import annotations

import os

if "PYTEST_XDIST_WORKER" in os.environ:  # two workers share the machine (pyproject.toml): one thread for each
    os.environ.setdefault("OMP_NUM_THREADS", "1")

import torch

if not torch.cuda.is_available():  # Triton's own library is made for the interpreter only if it is on at the import
    os.environ.setdefault("TRITON_INTERPRET", "1")
