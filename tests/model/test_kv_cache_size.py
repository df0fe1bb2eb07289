"""KV bytes a token from real configurations, and tokens on a card."""

from __future__ import annotations

import pytest

from engine.model.config import parse_hf_config
from engine.model.kv_cache_size import BYTES_PER_GB, WELL_KNOWN, ModelFacts, fit_on_card, size_in_words

BY_NAME = {model.name: model for model in WELL_KNOWN}


def test_opt_13b_is_the_papers_800_kb_a_token_and_1_6_gb_a_request():
    opt = BY_NAME["OPT-13B"]
    assert opt.kv_bytes_per_token() == 819_200
    assert size_in_words(opt.kv_bytes_per_token()) == "800 KB"
    assert size_in_words(opt.kv_bytes(opt.max_model_len)) == "1.6 GB"


@pytest.mark.parametrize(
    ("name", "num_bytes"),
    [
        ("SmolLM2-135M", 23_040),
        ("Qwen2.5-7B", 57_344),
        ("Llama 2 7B", 524_288),
        ("Llama 3.1 8B", 131_072),
        ("Llama 3.1 70B", 327_680),
    ],
)
def test_bytes_a_token_at_half_precision(name, num_bytes):
    assert BY_NAME[name].kv_bytes_per_token() == num_bytes
    assert BY_NAME[name].kv_bytes_per_token(4) == 2 * num_bytes


def test_heads_that_share_keys_and_values_are_counted_once():
    llama_2, llama_3 = BY_NAME["Llama 2 7B"], BY_NAME["Llama 3.1 8B"]
    assert llama_3.queries_per_kv_head == 4
    assert llama_2.queries_per_kv_head == 1
    assert llama_2.kv_bytes_per_token() == 4 * llama_3.kv_bytes_per_token()


def test_the_facts_of_a_loaded_model_are_its_configurations():
    config = parse_hf_config(
        {
            "architectures": ["LlamaForCausalLM"],
            "vocab_size": 49152,
            "hidden_size": 576,
            "intermediate_size": 1536,
            "num_hidden_layers": 30,
            "num_attention_heads": 9,
            "num_key_value_heads": 3,
            "max_position_embeddings": 8192,
            "tie_word_embeddings": True,
        }
    )
    facts = ModelFacts.of("running", config)
    assert facts.kv_bytes_per_token(4) == config.kv_bytes_per_token(4) == 46_080
    known = BY_NAME["SmolLM2-135M"]
    assert (facts.num_heads, facts.num_kv_heads, facts.head_dim) == (
        known.num_heads,
        known.num_kv_heads,
        known.head_dim,
    )
    assert (facts.max_model_len, facts.num_parameters) == (known.max_model_len, known.num_parameters)


def test_tokens_on_a_card_beside_the_weights():
    fit = fit_on_card(BY_NAME["Llama 3.1 8B"], 24, share=1.0)
    assert fit.weight_bytes == 16_060_522_496
    assert fit.kv_bytes == 24 * BYTES_PER_GB - 16_060_522_496
    assert fit.num_tokens == fit.kv_bytes // 131_072 == 74_075
    assert fit.num_requests(2048) == 36


def test_the_papers_12_gb_for_opt_13b():
    fit = fit_on_card(BY_NAME["OPT-13B"], 12, share=1.0, with_weights=False)
    assert fit.num_tokens == 15_728
    assert fit.num_requests(2048) == 7


def test_weights_that_do_not_fit_leave_no_room():
    fit = fit_on_card(BY_NAME["Llama 3.1 70B"], 80)
    assert not fit.weights_fit
    assert (fit.kv_bytes, fit.num_tokens) == (0, 0)


@pytest.mark.parametrize(("card_gb", "share"), [(0, 0.9), (-1, 0.9), (float("nan"), 0.9), (8, 0), (8, 1.1)])
def test_invalid_gpu_sizes_are_refused(card_gb, share):
    with pytest.raises(ValueError, match="A GPU needs more than 0 GB"):
        fit_on_card(WELL_KNOWN[0], card_gb, share=share)


@pytest.mark.parametrize(
    ("num_bytes", "words"),
    [(0, "0 bytes"), (1023, "1023 bytes"), (1024, "1 KB"), (23_040, "22.5 KB"), (327_680, "320 KB"), (5 << 40, "5 TB")],
)
def test_sizes_in_words(num_bytes, words):
    assert size_in_words(num_bytes) == words
