"""What the CPU's attention promises: the right answer on any processor, the same bits however a prompt is cut."""

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import Tensor

from kernels.backend import select_backend
from tests.kernels.cases import Batch, Shape, make_batch

pytest.importorskip("numba")
ROOT, CPU = Path(__file__).resolve().parents[2], torch.device("cpu")
PROMPT = Shape((9, 3), 64, 16, lengths=((0, 230),))
"""Two tiles of keys and part of a third, and eleven panels of rows, the last one not full."""
ODD = replace(PROMPT, heads=(6, 2), head_dim=33, block_size=5, sliding_window=50)
BFLOAT16 = replace(PROMPT, dtype=torch.bfloat16)
ODD_BFLOAT16 = replace(ODD, dtype=torch.bfloat16)
shapes = pytest.mark.parametrize(
    "shape", [PROMPT, ODD, BFLOAT16, ODD_BFLOAT16], ids=["float32", "odd-float32", "bfloat16", "odd-bfloat16"]
)


def attend(batch: Batch, **changed: Tensor) -> tuple[Tensor, Tensor]:
    attention = select_backend("cpu", CPU).paged_attention
    return attention(**{**batch.tensors, **changed}, **batch.options, return_lse=True)


@shapes
def test_a_long_prompt_equals_dense_float64(shape: Shape) -> None:
    batch = make_batch(shape, CPU)
    out, lse = attend(batch)
    # bfloat16 rounds weights and the result: 8 bits each of numbers up to 4.
    tolerance = 1e-5 if shape.dtype == torch.float32 else 2e-2
    torch.testing.assert_close(out.double(), batch.expected, rtol=tolerance, atol=tolerance)
    torch.testing.assert_close(lse.double(), batch.expected_lse, rtol=1e-5, atol=1e-5)


@shapes
@pytest.mark.parametrize("known", [1, 96, 150])
def test_no_bit_depends_on_where_a_prompt_is_cut(shape: Shape, known: int) -> None:
    batch = make_batch(shape, CPU)
    whole, whole_lse = attend(batch)
    late, late_lse = attend(
        batch,
        query=batch.tensors["query"][known:],
        query_start_loc=torch.tensor([0, 230 - known], dtype=torch.int32),
    )
    assert torch.equal(late, whole[known:])
    assert torch.equal(late_lse, whole_lse[known:])


def test_prefill_is_bitwise_independent_of_the_rest_of_the_batch() -> None:
    batch = make_batch(replace(BFLOAT16, lengths=((0, 130), (200, 1), (20, 70))), CPU)
    together, _ = attend(batch)
    alone, _ = attend(
        batch,
        query=batch.tensors["query"][131:],
        block_table=batch.tensors["block_table"][2:],
        seq_lens=batch.tensors["seq_lens"][2:],
        query_start_loc=torch.tensor([0, 70], dtype=torch.int32),
    )
    assert torch.equal(alone, together[131:])


ON_AN_OLDER_PROCESSOR = """
from kernels.paged_attention.cpu_prefill_gemm import LANES
from tests.kernels.test_cpu_attention import BFLOAT16, CPU, attend, make_batch, replace
batch = make_batch(replace(BFLOAT16, lengths=((0, 70), (150, 1))), CPU)
out, _ = attend(batch)
print(LANES, bool((out.double() - batch.expected).abs().max() < 2e-2))
"""


@pytest.mark.slow
def test_results_are_equal_without_avx512(tmp_path: Path) -> None:
    older = {"NUMBA_CPU_NAME": "haswell", "NUMBA_CPU_FEATURES": "+avx2,+fma", "NUMBA_CACHE_DIR": str(tmp_path)}
    environment = os.environ | older | {"PYTHONPATH": str(ROOT)}
    program = [sys.executable, "-c", ON_AN_OLDER_PROCESSOR]
    done = subprocess.run(program, env=environment, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.stdout.split() == ["8", "True"], done.stderr
