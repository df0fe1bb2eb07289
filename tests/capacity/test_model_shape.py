"""A config.json as a shape: kinds of layers, weights, and what is refused by name."""

from __future__ import annotations

import json

import pytest

from engine.capacity.kv_groups import group_layers
from engine.capacity.model_shape import ConfigFileError, ModelShape, parse_config, read_shape
from engine.capacity.plan import FirstLimit, first_limit, pool_of
from engine.model.kv_cache_size import WELL_KNOWN, fit_on_card
from tests.capacity.test_published_starts import GIB, QWEN_27B, dense

GEMMA = dense(30, 4, sliding_window=32, layer_types=(["sliding_attention"] * 2 + ["full_attention"]) * 10)


@pytest.mark.parametrize(
    ("more", "layers"),
    [
        ({}, {"full": 4}),
        ({"sliding_window": 4096}, {"sliding": 4}),
        ({"sliding_window": 4096, "model_type": "qwen2"}, {"full": 4}),
        ({"sliding_window": 4096, "use_sliding_window": False}, {"full": 4}),
        ({"sliding_window": 4096, "sliding_window_pattern": 2}, {"sliding": 2, "full": 2}),
        ({"sliding_window": 4096, "model_type": "gemma2"}, {"sliding": 2, "full": 2}),
        ({"layer_types": ["chunked_attention"] * 3 + ["full_attention"], 
            "attention_chunk_size"
        : 8}, {"sliding": 3, "full": 1}),
        ({"kv_lora_rank": 512, "qk_rope_head_dim": 64}, {"latent": 4}),
    ],
)  # fmt: skip
def test_kinds_of_layers(more: dict, layers: dict) -> None:
    assert read_shape(dense(4, 2, **more)).layers == layers


def test_latent_layers_store_one_row_a_token_on_every_gpu() -> None:
    shape = read_shape(dense(61, 128, kv_lora_rank=512, qk_rope_head_dim=64))
    assert [shape.token_bytes("latent", 2, gpus) for gpus in (1, 8)] == [1152, 1152]


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ({}, "num_hidden_layers is missing"),
        (dense(2000, 1), "num_hidden_layers is 2000: more than 1000"),
        (dense(2, 1, layer_types=["full_attention"]), "layer_types names 1 layers, num_hidden_layers 2"),
        (dense(2, 1, layer_types=["conv", "full_attention"]), "Layers of type conv are not known here"),
        (dense(2, 1, mamba_d_state=16), "Layers of type mamba are not known here"),
        (dense(2, 1, global_head_dim=512), "heads of different sizes"),
        (dense(2, 1, full_attention_interval=2), "linear_num_key_heads is missing"),
    ],
)
def test_what_is_not_known_is_refused_by_name(config: dict, words: str) -> None:
    with pytest.raises(ConfigFileError, match=words):
        read_shape(config)


@pytest.mark.parametrize("text", ["", "{", "[1]", "3", "[" * 100_000])
def test_text_that_is_no_config_is_refused(text: str) -> None:
    with pytest.raises(ConfigFileError):
        parse_config(text)


def test_weights_are_estimated_from_the_shape() -> None:
    """Llama 3.1 8B has 8,030,261,248 parameters; the estimate leaves out norms."""
    llama = dense(32, 8, intermediate_size=14_336, vocab_size=128_256, torch_dtype="bfloat16")
    shape = read_shape(parse_config(json.dumps(llama)))
    assert shape.num_parameters == 8_029_995_008
    assert shape.weight_bytes == 2 * 8_029_995_008
    assert read_shape({**llama, "quantization_config": {"quant_method": "fp8"}}).weight_bytes == 8_029_995_008
    assert read_shape({**llama, "quantization_config": {"bits": 4}}).weight_bytes == 8_029_995_008 // 2


def test_the_experts_of_a_mixture_are_all_counted() -> None:
    """Qwen3-30B-A3B has 30.5 billion parameters."""
    mixture = {
        "hidden_size": 2048, "num_attention_heads": 32, "num_key_value_heads": 4, "head_dim": 128, "num_experts": 128,
        "num_hidden_layers": 48, "moe_intermediate_size": 768, "intermediate_size": 6144, "vocab_size": 151_936,
        "max_position_embeddings": 40_960,
    }  # fmt: skip
    assert read_shape(mixture).num_parameters == pytest.approx(30.53e9, rel=0.001)


@pytest.mark.parametrize("facts", WELL_KNOWN, ids=lambda facts: facts.name)
def test_one_formula_with_the_lesson_what_is_cached(facts) -> None:
    fit = fit_on_card(facts, 80)
    pool = pool_of(ModelShape.of(facts), kv_bytes=fit.kv_bytes, max_model_len=2048, block_size=1)
    assert pool.num_tokens == fit.num_tokens
    assert pool.groups.block_bytes == fit.kv_bytes_per_token


def test_vllms_example_of_groups() -> None:
    """Its design document: 10 full and 20 sliding layers, blocks of 16, a window of 32, 112 tokens: 11 blocks."""
    groups = group_layers(read_shape(GEMMA), step_tokens=1)
    assert (groups.layers_per_group, groups.groups) == (10, {"sliding": 2, "full": 1})
    assert groups.blocks_for(112) == 7 + 2 * 3  # at its peak: a window of 32 can reach into three blocks
    assert groups.blocks_for(8) == 3


def test_requests_at_once_and_what_runs_out_first() -> None:
    pool = pool_of(read_shape(dense(32, 8)), kv_bytes=4 * GIB, max_model_len=8192)
    assert (pool.num_blocks, pool.num_tokens, pool.concurrency) == (2048, 32_768, 4.0)
    assert (pool.contiguous_requests, pool.paged_requests(1000), pool.longest_request) == (4, 32, 8192)
    assert first_limit(pool, 40, 1000, 256) == FirstLimit("blocks", 32)
    assert first_limit(pool, 40, 1000, 16) == FirstLimit("max_num_seqs", 16)
    assert first_limit(pool, 30, 1000, 256) == FirstLimit("nothing", 32)
    short = pool_of(read_shape(dense(32, 8)), kv_bytes=GIB // 2, max_model_len=8192)
    assert first_limit(short, 1, 10, 256) == FirstLimit("one_request", 0)
    assert short.longest_request == 4096
    assert first_limit(pool_of(read_shape(dense(32, 8)), kv_bytes=-5, max_model_len=8), 1, 1, 1) == FirstLimit(
        "weights", 0
    )


def test_the_longest_request_of_a_hybrid_leaves_room_for_its_states() -> None:
    pool = pool_of(read_shape(QWEN_27B), kv_bytes=10 * 16 * 784 * 4096, max_model_len=32_768)
    assert (pool.num_blocks, pool.longest_request) == (10, 7 * 784)
