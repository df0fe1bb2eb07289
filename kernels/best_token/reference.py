"""best_token in plain PyTorch (interface: BestToken): the definition, and what runs where there is no kernel."""

import torch
from torch import Tensor


def best_token(scores: Tensor) -> tuple[Tensor, Tensor]:
    return scores.argmax(dim=-1), torch.logsumexp(scores, dim=-1)
