"""silu_mul in plain PyTorch (interface: kernels.interface.SiluMul)."""

import torch.nn.functional as F
from torch import Tensor


def silu_mul(gate_up: Tensor) -> Tensor:
    """See kernels.interface.SiluMul."""
    gate, up = gate_up.chunk(2, dim=-1)
    return F.silu(gate) * up
