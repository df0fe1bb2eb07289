"""Configs of both spellings are read alike, and what would run wrong is refused by name."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from transformers import AutoConfig, AutoModelForCausalLM

from engine import Engine
from engine.components import build_components
from engine.config import ConfigError, EngineConfig
from engine.model.config import SUPPORTED_ARCHITECTURES, ModelConfig, RopeConfig, parse_hf_config
from engine.model.load_report import UnsupportedModelError

BASE: dict[str, Any] = {
    "architectures": ["Qwen2ForCausalLM"],
    "vocab_size": 100,
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "max_position_embeddings": 512,
}
LLAMA3 = {"factor": 8.0, "low_freq_factor": 1.5, "high_freq_factor": 4.0, "original_max_position_embeddings": 128}


def test_missing_config_fields_have_defaults() -> None:
    config = parse_hf_config(BASE)
    assert (config.num_kv_heads, config.head_dim, config.q_size, config.kv_size) == (4, 16, 64, 64)
    assert config.rope.theta == 10_000.0 and config.rope.rope_type == "default"
    assert config.sliding_windows == (None, None, None)
    assert not config.tie_word_embeddings and config.eos_token_ids == ()


def test_kv_bytes_of_opt_13b_are_those_of_the_paper() -> None:
    opt_13b = BASE | {"hidden_size": 5120, "num_hidden_layers": 40, "num_attention_heads": 40}
    assert parse_hf_config(opt_13b).kv_bytes_per_token(bytes_per_element=2) == 800 * 1024


@pytest.mark.parametrize("architecture", SUPPORTED_ARCHITECTURES)
@pytest.mark.parametrize("is_tied", [False, True])
def test_parameters_are_as_many_as_transformers_makes(architecture: str, is_tied: bool) -> None:
    settings = {name: value for name, value in BASE.items() if name != "architectures"}
    settings |= {"num_key_value_heads": 2, "head_dim": 16, "tie_word_embeddings": is_tied}
    model_type = architecture.removesuffix("ForCausalLM").lower()
    model = AutoModelForCausalLM.from_config(AutoConfig.for_model(model_type, **settings))
    config = parse_hf_config(settings | {"architectures": [architecture]})
    assert config.num_parameters == sum(parameter.numel() for parameter in model.parameters())


@pytest.mark.parametrize(
    "spelling",
    [
        {"rope_theta": 5e5, "rope_scaling": LLAMA3 | {"rope_type": "llama3"}},
        {"rope_theta": 5e5, "rope_scaling": LLAMA3 | {"type": "llama3"}},
        {"rope_parameters": LLAMA3 | {"rope_type": "llama3", "rope_theta": 5e5}},
        {"rope_parameters": {"full_attention": LLAMA3 | {"rope_type": "llama3", "rope_theta": 5e5}}},
        {"rope_parameters": {"rope_theta": 5e5, "full_attention": LLAMA3 | {"rope_type": "llama3"}}},
        {
            "layer_types": ["full_attention"] * 3,
            "rope_parameters": {
                "full_attention": LLAMA3 | {"rope_type": "llama3", "rope_theta": 5e5},
                "sliding_attention": {"rope_type": "default", "rope_theta": 1e4},
            },
        },
    ],
)
def test_rope_scaling_in_every_spelling(spelling: dict[str, Any]) -> None:
    assert parse_hf_config(BASE | spelling).rope == RopeConfig(5e5, "llama3", 8.0, 1.5, 4.0, 128)


@pytest.mark.parametrize(
    ("settings", "windows"),
    [
        ({"sliding_window": 8}, (None, None, None)),
        ({"sliding_window": 8, "use_sliding_window": True, "max_window_layers": 2}, (None, None, 8)),
        (
            {
                "sliding_window": 8,
                "use_sliding_window": True,
                "layer_types": ["sliding_attention", "full_attention", "full_attention"],
            },
            (8, None, None),
        ),
        ({"architectures": ["MistralForCausalLM"], "sliding_window": 8}, (8, 8, 8)),
        ({"architectures": ["MistralForCausalLM"], "sliding_window": None}, (None, None, None)),
    ],
)
def test_sliding_windows_layer_by_layer(settings: dict[str, Any], windows: tuple[int | None, ...]) -> None:
    assert parse_hf_config(BASE | settings).sliding_windows == windows


@pytest.mark.parametrize(("written", "read"), [(7, (7,)), ([7, 8], (7, 8)), (None, ())])
def test_eos_token_ids(written: object, read: tuple[int, ...]) -> None:
    assert parse_hf_config(BASE | {"eos_token_id": written}).eos_token_ids == read


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"architectures": ["MixtralForCausalLM"]}, "MixtralForCausalLM"),
        ({"architectures": None, "model_type": "gpt2"}, "gpt2"),
        ({"quantization_config": {"quant_method": "awq"}}, "quantized with awq"),
        ({"hidden_act": "gelu"}, "activation gelu"),
        ({"rope_scaling": {"rope_type": "yarn", "factor": 4.0}}, "yarn"),
        ({"partial_rotary_factor": 0.5}, "partial_rotary_factor 0.5"),
        ({"rope_parameters": {"full_attention": {"rope_type": "yarn", "factor": 4.0}}}, "yarn"),
        (
            {
                "rope_parameters": {
                    "full_attention": {"rope_type": "default", "rope_theta": 5e5},
                    "sliding_attention": {"rope_type": "default", "rope_theta": 1e4},
                }
            },
            r"full_attention: default, base 500000; sliding_attention: default, base 10000",
        ),
        (
            {"layer_types": ["sliding_attention"] * 3, "rope_parameters": {"full_attention": {"rope_theta": 5e5}}},
            "layers of type sliding_attention is not in the config",
        ),
    ],
)
def test_unsupported_config_is_refused_by_name(settings: dict[str, Any], named: str) -> None:
    with pytest.raises(UnsupportedModelError, match=named):
        parse_hf_config(BASE | settings)


@pytest.mark.parametrize(
    ("settings", "max_positions"),
    [
        ({}, 512),
        ({"rope_scaling": {"type": "linear", "factor": 4.0}}, 2048),
        ({"rope_scaling": LLAMA3 | {"type": "llama3"}}, 512),
    ],
)
def test_max_position_embeddings(settings: dict[str, Any], max_positions: int) -> None:
    assert parse_hf_config(BASE | settings).max_positions == max_positions


@pytest.mark.parametrize(("max_positions", "limit"), [(100, 100), (512, 512), (4096, 512)])
def test_the_default_limit_is_lowered_to_the_model_s_positions(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, max_positions: int, limit: int
) -> None:
    monkeypatch.setattr(ModelConfig, "max_positions", property(lambda _config: max_positions))
    config = EngineConfig(model="tiny-random", num_blocks=8)
    assert Engine(config).config == replace(config, max_model_len=limit)
    said = f"max_model_len is {limit} instead of 512: tiny-random knows no more positions"
    assert [line for line in caplog.messages if "max_model_len" in line] == ([said] if limit < 512 else [])
    caplog.clear()
    assert Engine(replace(config, max_model_len=512)).config.max_model_len == limit, "asked for by name"
    assert [line for line in caplog.messages if "max_model_len" in line] == ([said] if limit < 512 else [])
    with pytest.raises(ConfigError, match=f"tiny-random supports {max_positions} positions"):
        Engine(replace(config, max_model_len=max_positions + 513))


def test_a_limit_beyond_the_model_s_positions_is_refused_in_a_sentence() -> None:
    build_components(EngineConfig(model="tiny-random", max_model_len=4096))
    with pytest.raises(ConfigError) as refusal:
        build_components(EngineConfig(model="tiny-random", max_model_len=100_000))
    assert str(refusal.value) == (
        "max_model_len is 100000, but tiny-random supports 4096 positions: choose at most 4096."
    )
