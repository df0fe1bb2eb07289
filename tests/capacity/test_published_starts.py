"""Published start-ups come out within their printed rounding: memory is printed with two decimals, so +-0.005 GiB.

Sources are the issue threads named; shapes of models are from their publishers' config.json.
"""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from engine.capacity.model_shape import Config, read_shape
from engine.capacity.plan import Pool, pool_of

GIB = 1024**3


def dense(num_layers: int, num_kv_heads: int, head_dim: int = 128, **more: object) -> Config:
    heads = {"hidden_size": 4096, "num_attention_heads": 32, "num_key_value_heads": num_kv_heads, "head_dim": head_dim}
    return {"num_hidden_layers": num_layers, "max_position_embeddings": 262_144, **heads, **more}


def gated_delta_net(num_layers: int, num_kv_heads: int, value_heads: int) -> Config:
    linear = {"linear_num_key_heads": 16, "linear_num_value_heads": value_heads, "linear_key_head_dim": 128}
    more = {"linear_value_head_dim": 128, "linear_conv_kernel_dim": 4, "full_attention_interval": 4}
    return {"text_config": dense(num_layers, num_kv_heads, 256, **linear, **more)}


LLAMA_8B, QWEN_0_6B, QWEN_14B = dense(32, 8), dense(28, 8), dense(40, 8)
QWEN_30B_A3B, QWEN_235B = dense(48, 4), dense(94, 4)
QWEN_27B, QWEN_35B_A3B = gated_delta_net(64, 4, 48), gated_delta_net(40, 2, 32)


@dataclass(frozen=True)
class Start:
    """`gib`: the printed memory. `tokens` or `evenly`: the printed tokens; `concurrency`: the printed one."""

    name: str
    config: Config
    gib: float
    max_model_len: int
    tokens: int | None = None
    evenly: int | None = None
    concurrency: float | None = None
    tensor_parallel: int = 1
    element_bytes: float = 2.0
    state_blocks: int = 1
    block_size: int = 16

    def pool(self, gib: float) -> Pool:
        return pool_of(
            read_shape(self.config), kv_bytes=int(gib * GIB), max_model_len=self.max_model_len,
            tensor_parallel=self.tensor_parallel, element_bytes=self.element_bytes, state_blocks=self.state_blocks,
            block_size=self.block_size,
        )  # fmt: skip


STARTS = (
    Start("G1 20,000, vllm 10517", LLAMA_8B, 3.81, 20_000, 1952 * 16, concurrency=1.56),
    Start("G1 29,000, vllm 10517", LLAMA_8B, 2.89, 29_000, 1478 * 16, concurrency=0.82),
    Start("G2, mellea 416", QWEN_0_6B, 61.84, 8192, 36_184 * 16, concurrency=70.67),
    Start("G3a, LMCache 1739", QWEN_14B, 6.51, 32_768, 42_656, concurrency=1.30),
    Start("G3b, vllm 33263", QWEN_0_6B, 18.78, 1024, 175_856),
    Start("G4 fp8, vllm 25350", QWEN_30B_A3B, 10.55, 100_000, 230_528, concurrency=2.31, element_bytes=1),
    Start("G4 fp8, the longest that fits", QWEN_30B_A3B, 5.59, 221_000, 122_080, element_bytes=1),
    Start("G8 SGLang, vllm 21348", QWEN_235B, 16.47, 40_960, 367_404, tensor_parallel=4, block_size=1),
    Start("G9b SGLang, sglang 1853", dense(28, 8), 60.99, 131_072, 570_979, concurrency=4.36, block_size=1),
    Start("vllm 12330", LLAMA_8B, 11.12, 8192, 5691 * 16, concurrency=11.12),
    Start("vllm 34076", QWEN_30B_A3B, 3.18, 262_144, 34_736),
    Start("sglang 18263", QWEN_30B_A3B, 152.88, 40_960, 1_669_816, block_size=1),
    Start("club-3090 612, hybrid fp8", QWEN_35B_A3B, 5.98, 131_072, 567_978, concurrency=4.33, element_bytes=1,
          state_blocks=2),
    Start("talos-argocd-proxmox 1995, hybrid fp8 on two", QWEN_27B, 4.99, 131_072, 302_921, concurrency=2.31,
          tensor_parallel=2, element_bytes=1, state_blocks=2),
    Start("Qwen3.8-27B, hybrid", QWEN_27B, 19.54, 262_144, 313_650, concurrency=1.20, state_blocks=2),
)  # fmt: skip


@pytest.mark.parametrize("start", STARTS, ids=lambda start: start.name)
def test_tokens_come_out_within_printed_rounding(start: Start) -> None:
    lowest, highest = start.pool(start.gib - 0.005), start.pool(start.gib + 0.005)
    assert lowest.num_tokens <= start.tokens <= highest.num_tokens
    assert highest.num_tokens - lowest.num_tokens <= start.tokens * 0.004  # so that another model does not fit
    if start.concurrency is not None:
        assert round(lowest.concurrency, 2) <= start.concurrency <= round(highest.concurrency, 2)


def test_g5_both_lines_from_one_number_of_blocks() -> None:
    """vLLM 0.19 printed 290,864 tokens and 33.04x at 32,768: 1,487 blocks of 784 tokens in four groups."""
    start = Start("G5, vllm 40691", QWEN_27B, 0, 32_768)
    groups = start.pool(1).groups
    assert (groups.block_size, groups.layers_per_group, groups.num_groups) == (784, 16, 4)
    assert groups.block_bytes == 16 * 784 * 4096
    assert groups.blocks_for(32_768) == 42 + 3
    pool = Pool(groups, 1487, 32_768)
    in_equal_parts = pool.num_blocks // groups.num_groups * groups.block_size
    assert in_equal_parts == 290_864, "as if every group had an equal part of the blocks"
    assert round(pool.concurrency, 2) == 33.04
    assert pool.num_tokens == 1_082_800
    assert pool_of(read_shape(QWEN_27B), kv_bytes=1487 * groups.block_bytes, max_model_len=32_768) == pool


def test_g5_the_environment_block_names_another_model() -> None:
    groups = Start("", QWEN_35B_A3B, 0, 32_768).pool(1).groups
    assert groups.block_size == 1056
    assert 290_864 % 1056 != 0


def test_g8_vllm_within_two_percent() -> None:
    """The memory line is one rank's, the tokens are the smallest rank's: 180,935 against the printed 178,880."""
    start = Start("G8 vLLM, vllm 21348", QWEN_235B, 8.11, 40_960, tensor_parallel=4)
    pool = start.pool(8.11)
    assert pool.num_tokens == 180_928
    assert abs(pool.num_tokens - 178_880) / 178_880 < 0.02


@pytest.mark.parametrize(("tensor_parallel", "heads"), [(1, 4), (2, 2), (4, 1), (8, 1)])
def test_beyond_the_kv_heads_each_gpu_keeps_a_copy(tensor_parallel: int, heads: int) -> None:
    shape = read_shape(QWEN_235B)
    assert shape.kv_heads_on_rank(tensor_parallel) == heads
    assert shape.token_bytes("full", 2, tensor_parallel) * 94 == 48_128 * heads


def test_the_block_size_of_a_hybrid_grows_with_fewer_bytes_a_token() -> None:
    """Published: 784 at 16 bits, 1,568 at 8 bits (club-3090 1047), 1,568 at 8 bits on two GPUs."""
    sizes = [
        Start("", QWEN_27B, 0, 1024, element_bytes=size, tensor_parallel=gpus).pool(1).groups.block_size
        for size, gpus in ((2, 1), (1, 1), (1, 2))
    ]
    assert sizes == [784, 1568, 1568]
