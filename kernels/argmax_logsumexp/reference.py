"""argmax_logsumexp in plain PyTorch (interface: kernels.interface.ArgmaxLogsumexp)."""

import torch
from torch import Tensor


def argmax_logsumexp(logits: Tensor) -> Tensor:
    """See kernels.interface.ArgmaxLogsumexp."""
    token_ids = logits.argmax(dim=-1)
    largest = logits.gather(1, token_ids[:, None]).squeeze(1)
    return torch.stack([token_ids.double(), largest.double(), torch.logsumexp(logits, dim=-1).double()], dim=1)
