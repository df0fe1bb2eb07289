"""vllm 47671 and 1486: block * stride overflowed int32 in a large cache, with a crash or silently wrong reads.

The cache here has more than 2 ** 31 elements. On the CPU it is address space without memory behind it, but for the
few pages that the test touches.
"""

import mmap
import sys
from typing import Any

import pytest
import torch

from kernels.backend import Backend
from tests.kernels.dense import dense_attention

Target = tuple[Backend, torch.device]

BLOCK_SIZE, HEAD_DIM = 16, 64
BLOCK_ELEMENTS = BLOCK_SIZE * HEAD_DIM
NUM_BLOCKS = 2**31 // BLOCK_ELEMENTS + 4
NO_RESERVE = 0x4000
"""Linux's MAP_NORESERVE, which the mmap module does not name before Python 3.13."""
SHAPE = (NUM_BLOCKS, BLOCK_SIZE, 1, HEAD_DIM)


@pytest.fixture
def huge_cache(target: Target, monkeypatch: pytest.MonkeyPatch) -> torch.Tensor:
    """A zeroed cache whose last blocks lie past 2 ** 31 elements; it serves as keys and as values."""
    backend, device = target
    if device.type == "cuda":
        if torch.cuda.mem_get_info()[0] < 10 << 30:
            pytest.skip("needs 10 GiB of free GPU memory")
        return torch.zeros(SHAPE, device=device)
    if sys.platform != "linux":
        pytest.skip("reserves address space without memory behind it in the way of Linux")
    if backend.name == "triton":
        # The interpreter uses CPU tensors where they are, yet copies each storage onto itself at the end.
        from triton.runtime.interpreter import GridExecutor

        monkeypatch.setattr(GridExecutor, "_restore_args_dev", lambda *_: None)
    memory = mmap.mmap(-1, 4 * NUM_BLOCKS * BLOCK_ELEMENTS, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | NO_RESERVE)
    return torch.frombuffer(memory, dtype=torch.float32).view(SHAPE)


def test_last_blocks_are_written_read_and_copied(target: Target, huge_cache: torch.Tensor) -> None:
    backend, device = target
    rows = torch.randn(20, 1, HEAD_DIM)
    table = torch.tensor([[NUM_BLOCKS - 1, NUM_BLOCKS - 3]], dtype=torch.int32)
    slots = [int(table[0, i // BLOCK_SIZE]) * BLOCK_SIZE + i % BLOCK_SIZE for i in range(20)]
    qkv = rows.to(device).expand(-1, 3, -1).contiguous()  # one head each, not turned: the same row three times
    cos, sin = torch.ones(20, HEAD_DIM // 2, device=device), torch.zeros(20, HEAD_DIM // 2, device=device)
    backend.rotary_write_kv(qkv, cos, sin, huge_cache, huge_cache, torch.tensor(slots, device=device))
    assert torch.equal(huge_cache[NUM_BLOCKS - 1].cpu(), rows[:16])

    for query_len in (1, 3):
        query = torch.randn(query_len, 1, HEAD_DIM)
        expected, _ = dense_attention(query, rows, rows, scale=0.125)
        batch: dict[str, Any] = {
            "query": query, "key_cache": huge_cache, "value_cache": huge_cache, "block_table": table,
            "seq_lens": torch.tensor([20], dtype=torch.int32),
            "query_start_loc": torch.tensor([0, query_len], dtype=torch.int32),
        }  # fmt: skip
        out = backend.paged_attention(**{name: tensor.to(device) for name, tensor in batch.items()}, scale=0.125)
        torch.testing.assert_close(out.cpu().double(), expected, rtol=1e-5, atol=1e-5)

    backend.copy_blocks([huge_cache], torch.tensor([[NUM_BLOCKS - 1, NUM_BLOCKS - 2]], device=device))
    assert torch.equal(huge_cache[NUM_BLOCKS - 2].cpu(), rows[:16])
