"""For all tests. Two workers share the machine (pyproject.toml), so each of them computes with one thread."""

from __future__ import annotations

import os

if "PYTEST_XDIST_WORKER" in os.environ:  # before anything imports torch; the servers that tests start inherit it
    os.environ.setdefault("OMP_NUM_THREADS", "1")
