"""One fixture gives every backend that a machine can run, so each kernel test is written once.

Without a GPU the Triton kernels run under Triton's interpreter, switched on in tests/conftest.py. With a GPU they run
on the card, in the tests marked `gpu`.
"""

from collections.abc import Iterator

import pytest
import torch

from kernels.backend import Backend, select_backend
from kernels.registry import BACKENDS

CPU, GPU = torch.device("cpu"), torch.device("cuda")
TARGETS = [
    *(pytest.param((spec.name, CPU), id=f"{spec.name}-cpu") for spec in BACKENDS),
    *(
        pytest.param((spec.name, GPU), id=f"{spec.name}-gpu", marks=pytest.mark.gpu)
        for spec in BACKENDS
        if spec.runs_on(GPU.type)
    ),
]
"""Triton's kernels on the CPU are interpreted."""


@pytest.fixture(params=TARGETS)
def target(request: pytest.FixtureRequest) -> tuple[Backend, torch.device]:
    """A backend and the device that its tensors live on."""
    name, device = request.param
    if device == GPU and not torch.cuda.is_available():
        pytest.skip("needs a GPU that PyTorch can see")
    [spec] = [spec for spec in BACKENDS if spec.name == name]
    if not spec.runs_on(device.type) and torch.cuda.is_available():
        pytest.skip("these kernels run on this machine's GPU instead of under the interpreter")
    try:
        return select_backend(name, device), device
    except ValueError as obstacle:
        pytest.skip(str(obstacle))


@pytest.fixture(autouse=True)
def poisoned_outputs() -> Iterator[None]:
    """Fill what torch.empty returns with NaN, so that a result nobody wrote cannot pass for a right one."""
    was_on = torch.are_deterministic_algorithms_enabled()
    torch.use_deterministic_algorithms(True, warn_only=True)
    yield
    torch.use_deterministic_algorithms(was_on)
