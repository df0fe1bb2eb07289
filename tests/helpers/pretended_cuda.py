"""A GPU that is not there: tensors on `cuda:0` that have shapes, types and a device, and no numbers.

torch's FakeTensorMode works out shapes and refuses operations over two devices. Triton's launches are noted instead of
made, with a check that every tensor is on the GPU. What the host reads is noted, and is all zeros, or true.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes
from torch.utils._pytree import tree_leaves
from torch.utils.weak import WeakIdKeyDictionary

import kernels
from engine.model import kv_store
from kernels import registry
from kernels.paged_attention import triton_kernel

GPU = torch.device("cuda", 0)
aten = torch.ops.aten


@dataclass(frozen=True)
class Launch:
    """One launch of a Triton kernel."""

    kernel: str
    grid: tuple[int, ...]
    arguments: tuple[Any, ...]
    constants: dict[str, Any]


@dataclass
class PretendedGpu:
    launches: list[Launch] = field(default_factory=list)
    host_reads: list[tuple[int, ...]] = field(default_factory=list)
    """The shape of each tensor that was copied from the GPU to the host, which waits for the GPU."""
    operators: Counter[str] = field(default_factory=Counter)
    """How often each ATen operator ran on the GPU that launches a kernel: no view and no allocation."""
    num_uploads: int = 0
    """Copies from the host to the GPU."""

    def read(self, tensor: Tensor) -> Any:
        """`tensor.tolist()`."""
        self.host_reads.append(tuple(tensor.shape))
        numbers: Any = 0.0 if tensor.dtype.is_floating_point else 0
        for size in reversed(tensor.shape):
            numbers = [numbers] * size
        return numbers

    def names(self) -> list[str]:
        """The kernels in the order of their launches."""
        return [launch.kernel for launch in self.launches]


@contextmanager
def pretended_gpu(monkeypatch: pytest.MonkeyPatch) -> Iterator[PretendedGpu]:
    """Within it `cuda:0` exists, as an H100 on which all Triton kernels can be launched."""
    gpu = PretendedGpu()
    for path in sorted(Path(kernels.__path__[0]).glob("*/triton_kernel.py")):
        module = import_module(f"kernels.{path.parent.name}.triton_kernel")
        for name in [name for name in vars(module) if name.endswith("_kernel") and hasattr(module, name)]:
            monkeypatch.setattr(module, name, _Kernel(name, gpu))
    monkeypatch.setattr(triton_kernel, "architecture_of", lambda _device: "cuda90")
    monkeypatch.setattr(triton_kernel, "multiprocessors_of", lambda _device: 132)
    monkeypatch.setattr(registry, "_launcher_obstacle", lambda: "")
    monkeypatch.setattr(kv_store, "available_memory", lambda _device: None)
    monkeypatch.setattr(
        FakeTensor, "tolist", lambda tensor: gpu.read(tensor)
    )  # its own one would read number by number
    torch._C._ensureCUDADeviceGuardSet()
    monkeypatch.setattr(torch.cuda, "Event", _Event)
    monkeypatch.setattr(torch, "from_numpy", _with_numbers)
    with FakeTensorMode(allow_non_fake_inputs=True), torch.no_grad(), _Operators(gpu), _Operations(gpu):
        yield gpu


_from_numpy = torch.from_numpy
_array_of: WeakIdKeyDictionary = WeakIdKeyDictionary()


def _with_numbers(array: Any) -> Tensor:
    """What the host prepares has numbers, and the host may read them. A copy: fakes take no memory of NumPy's.

    `tensor.numpy()` is the array itself, into which the next step may write.
    """
    with _disable_current_modes():
        tensor = _from_numpy(array).clone()
    _array_of[tensor] = array
    return tensor


class _Event:
    def record(self) -> None: ...

    def synchronize(self) -> None: ...


class _Kernel:
    """Stands for a kernel: `kernel[grid](arguments)` is noted."""

    def __init__(self, name: str, gpu: PretendedGpu) -> None:
        self._name, self._gpu = name, gpu

    def __getitem__(self, grid: tuple[int, ...]) -> Callable[..., None]:
        def launch(*arguments: Any, **constants: Any) -> None:
            away = [i for i, given in enumerate(arguments) if isinstance(given, Tensor) and given.device.type != "cuda"]
            assert not away, f"arguments {away} of {self._name} are not on the GPU"
            self._gpu.launches.append(Launch(self._name, grid, arguments, constants))

        return launch


_NO_LAUNCH = {
    "empty", "empty_like", "empty_strided", "new_empty", "detach", "_unsafe_view", "_reshape_alias", "device",
}  # fmt: skip
"""Operators that allocate or look at a tensor in another way, beside those that torch calls views."""


class _Operators(TorchDispatchMode):
    """Counts what reaches the GPU in the end, below torch's functions that are made of others."""

    def __init__(self, gpu: PretendedGpu) -> None:
        super().__init__()
        self._gpu = gpu

    def __torch_dispatch__(
        self, function: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        result = function(*args, **(kwargs or {}))
        tensors = [leaf for leaf in tree_leaves((args, kwargs, result)) if isinstance(leaf, Tensor)]
        devices = {tensor.device.type for tensor in tensors}
        name = function.overloadpacket.__name__
        if name in ("copy_", "_to_copy") and devices == {"cpu", "cuda"}:
            self._gpu.num_uploads += 1
        elif "cuda" in devices and not function.is_view and name not in _NO_LAUNCH:
            self._gpu.operators[name] += 1
        return result


class _Operations(TorchFunctionMode):
    """Notes what the host reads, and does what a torch without CUDA cannot do itself for tensors on `cuda`."""

    def __init__(self, gpu: PretendedGpu) -> None:
        super().__init__()
        self._gpu = gpu

    def __torch_function__(
        self, function: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = dict(kwargs or {})
        if kwargs.pop("pin_memory", False) and function is torch.zeros:  # the host writes to it: it has numbers
            with _disable_current_modes():
                return torch.zeros(*args, **kwargs)
        if function is Tensor.pin_memory:
            return args[0]
        if function is Tensor.numpy and args[0] in _array_of:
            return _array_of[args[0]]
        if function is Tensor.copy_ and args[0].device.type == "cpu" and args[1].device.type == "cuda":
            self._gpu.host_reads.append(tuple(args[1].shape))
            return args[0]
        if function is Tensor.__getitem__ and not isinstance(args[0], FakeTensor):
            with _disable_current_modes():  # memory that NumPy sees cannot be made a fake
                return function(*args)
        if not (args and isinstance(args[0], Tensor) and args[0].device.type == "cuda"):
            return function(*args, **kwargs)
        tensor = args[0]
        if function in _READS:
            self._gpu.host_reads.append(tuple(tensor.shape))
            return _READS[function]
        if function is Tensor.data_ptr:
            return 0
        if function is torch.nn.functional.rms_norm:  # torch's builds for CUDA have a kernel for it, this one has not
            self._gpu.operators["_fused_rms_norm"] += 1
            return torch.empty_like(tensor)
        if function is Tensor.__getitem__:
            return _indexed(tensor, args[1])
        if function is Tensor.__setitem__:
            return aten.copy_.default(_indexed(tensor, args[1]), args[2])
        if function is Tensor.copy_:
            source = args[1] if isinstance(args[1], FakeTensor) else torch.empty(args[1].shape, dtype=args[1].dtype)
            return aten.copy_.default(tensor, source)
        if function is Tensor.fill_:
            return aten.fill_.Scalar(*args)
        result = function(*args, **kwargs)
        if isinstance(result, Tensor) and result.device.type == "cpu" and function is not torch.empty_like:
            self._gpu.host_reads.append(tuple(tensor.shape))
        return result


_READS = {Tensor.item: 0, Tensor.__int__: 0, Tensor.__index__: 0, Tensor.__float__: 0.0, Tensor.__bool__: True}


def _indexed(tensor: Tensor, index: Any) -> Tensor:
    """`tensor[index]`, by the operations that it is made of: torch's own indexing asks for a real CUDA."""
    index = index if isinstance(index, tuple) else (index,)
    num_dims = sum(part is not None and part is not Ellipsis for part in index)
    rest = [i for i, part in enumerate(index) if part is Ellipsis]
    if rest:
        whole = (slice(None),) * (tensor.dim() - num_dims)
        index = (*index[: rest[0]], *whole, *index[rest[0] + 1 :])
    dim, gathered = 0, []
    for part in index:
        if isinstance(part, int):
            tensor = aten.select.int(tensor, dim, part)
            continue
        if part is None:
            tensor = aten.unsqueeze.default(tensor, dim)
        elif isinstance(part, slice):
            tensor = aten.slice.Tensor(tensor, dim, part.start, part.stop, part.step or 1)
        gathered.append(part if isinstance(part, Tensor) else None)
        dim += 1
    return aten.index.Tensor(tensor, gathered) if any(part is not None for part in gathered) else tensor
