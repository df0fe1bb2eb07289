"""Types at the door: numbers of NumPy and torch are converted, everything else that is not what was asked is refused,
so that a trace can always be written and read again."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from engine import Engine, EngineConfig, SamplingParams
from engine.admission import RequestRefusedError
from engine.config import ConfigError
from engine.trace.events import RequestRefused
from engine.trace.trace import Trace
from engine.trace.validation import shown
from tests.helpers.hash_model import greedy_continuation, hash_engine
from tests.helpers.models import loaded, new_kv_store

WHOLE = "must be a whole number of at most 64 bits"
CONFIG = EngineConfig(block_size=4, num_blocks=64, max_model_len=64)


def written_and_read(engine: Engine) -> Trace:
    return Trace.from_json(engine.trace.to_json().encode("utf-8").decode("utf-8"))


@pytest.mark.parametrize(
    "prompt",
    [
        np.array([10, 11, 12]),
        torch.tensor([10, 11, 12]),
        [np.int64(10), np.uint8(11), torch.tensor(12)],
        (10, 11, 12),
        range(10, 13),
    ],
    ids=lambda prompt: type(prompt).__name__,
)
def test_token_ids_of_every_kind_become_whole_numbers(prompt: Any) -> None:
    engine = hash_engine(CONFIG)
    (output,) = engine.generate([prompt], SamplingParams(max_tokens=np.int32(3)))  # type: ignore[arg-type]
    assert output.prompt_token_ids == (10, 11, 12)
    assert list(output.outputs[0].token_ids) == greedy_continuation([10, 11, 12], 3)
    assert written_and_read(engine).events == engine.trace.events


@pytest.mark.parametrize(
    ("prompt", "seen"),
    [
        ([True, 11], "[True, 11]"),
        ([1.0] * 2, "[1.0, 1.0]"),
        (["a"], "['a']"),
        ([None], "[None]"),
        ([10**5000], "a number of list too long to write"),
        (np.array([1.0, 2.0]), "array([1., 2.])"),
        (np.array([True]), "array([ True])"),
        (np.array([[1, 2]]), "array([[1, 2]])"),
        (b"abc", "b'abc'"),
        ({1, 2}, "{1, 2}"),
        (5, "5"),
        (None, "None"),
    ],
    ids=shown,
)
def test_invalid_token_ids_are_refused_and_logged(prompt: Any, seen: str) -> None:
    engine = hash_engine(CONFIG)
    with pytest.raises(RequestRefusedError) as refusal:
        engine.add_request(prompt, request_id="bad")
    assert str(refusal.value) == f"A prompt must be text or a list of token ids; it is {seen}."
    assert list(written_and_read(engine))[1:] == [RequestRefused(0, "bad", str(refusal.value))]


@pytest.mark.parametrize(
    ("request_id", "sentence"),
    [
        (("a",), "A request id must be text; this one is ('a',)."),
        (5, "A request id must be text; this one is 5."),
        ("a\ud83d", r"A request id must be text; this one is 'a\ud83d'."),
        ("x" * 2_000_000, "A request id must be text; this one is '" + "x" * 76 + "...."),
        ("x" * 65, "A request id has 1 to 64 characters and no '#'; this one is '" + "x" * 65 + "'."),
    ],
    ids=["tuple", "number", "half a surrogate pair", "endless", "long"],
)
def test_an_id_that_cannot_be_logged_is_refused_under_the_next_one(request_id: Any, sentence: str) -> None:
    engine = hash_engine(CONFIG)
    engine.add_request([1], request_id="A")
    with pytest.raises(RequestRefusedError) as refusal:
        engine.add_request([1], request_id=request_id)
    assert str(refusal.value) == sentence
    assert list(written_and_read(engine))[-1] == RequestRefused(0, "B", sentence)
    assert engine.add_request([1]) == "C"


def test_params_of_another_type_are_refused_and_logged() -> None:
    engine = hash_engine(CONFIG)
    with pytest.raises(RequestRefusedError, match=r"^params must be SamplingParams; it is \{'n': 2\}\.$"):
        engine.add_request([1], {"n": 2})  # type: ignore[arg-type]
    assert isinstance(list(written_and_read(engine))[-1], RequestRefused)


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({"seed": "x"}, "seed must be a whole number of at most 64 bits; it is 'x'."),
        ({"seed": 1.5}, "seed must be a whole number of at most 64 bits; it is 1.5."),
        ({"stop": ("a", 5)}, "stop must be text of at most 1000000 characters; it is ('a', 5)."),
        ({"stop": ("\ud83d",)}, r"stop must be text without unpaired surrogates; it is ('\ud83d',)."),
        ({"stop": "abc"}, "stop must be a list of at most 1000000 items; it is 'abc'."),
        ({"max_tokens": 2**65}, f"max_tokens must be a whole number of at most 64 bits; it is {2**65}."),
        ({"max_tokens": True}, "max_tokens must be a whole number of at most 64 bits; it is True."),
        ({"n": 1.0}, "n must be a whole number of at most 64 bits; it is 1.0."),
        ({"temperature": "0"}, "temperature must be a finite number; it is '0'."),
        ({"temperature": True}, "temperature must be a finite number; it is True."),
        ({"temperature": math.inf}, "temperature must be a finite number; it is inf."),
        ({"temperature": 10**5000}, "temperature must be a finite number; it is a number of int too long to write."),
        ({"top_p": np.float32("nan")}, "top_p must be a finite number; it is np.float32(nan)."),
        ({"ignore_eos": 1}, "ignore_eos must be true or false; it is 1."),
    ],
    ids=shown,
)
def test_params_of_a_wrong_type_are_named(values: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValueError) as error:
        SamplingParams(**values)
    assert str(error.value) == sentence


def test_numbers_of_numpy_and_torch_become_python_s_own() -> None:
    params: Any = {
        "temperature": np.float32(0.5),
        "top_p": torch.tensor(0.5),
        "n": np.int64(2),
        "seed": torch.tensor(7),
    }
    made = SamplingParams(**params, stop=["a"], ignore_eos=np.True_)  # type: ignore[arg-type]
    assert made == SamplingParams(temperature=0.5, top_p=0.5, n=2, seed=7, stop=("a",), ignore_eos=True)
    assert [type(value) for value in (made.temperature, made.top_p, made.n, made.seed)] == [float, float, int, int]
    config = EngineConfig(block_size=np.int16(4), free_order=np.array([6, 1]))  # type: ignore[arg-type]
    assert config == EngineConfig(block_size=4, free_order=(6, 1)) and type(config.free_order[0]) is int


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"max_num_batched_tokens": math.nan}, f"max_num_batched_tokens {WHOLE}; it is nan."),
        ({"max_num_batched_tokens": "256"}, f"max_num_batched_tokens {WHOLE}; it is '256'."),
        ({"block_size": True}, "block_size must be a whole number of at most 64 bits; it is True."),
        ({"num_blocks": 64.0}, "num_blocks must be a whole number of at most 64 bits; it is 64.0."),
        ({"free_order": (True, 2.0)}, "free_order must be a whole number of at most 64 bits; it is (True, 2.0)."),
        ({"enable_prefix_caching": "no"}, "enable_prefix_caching must be true or false; it is 'no'."),
        ({"seed": None}, "seed must be a whole number of at most 64 bits; it is None."),
        ({"model": 5}, "model must be text of at most 1000000 characters; it is 5."),
        ({"preemption_mode": ["swap"]}, "preemption_mode must be one of recompute, swap; it is ['swap']."),
        ({"parallel_sampling": "vote"}, "parallel_sampling must be one of fork, prefix_cache; it is 'vote'."),
    ],
    ids=shown,
)
def test_settings_of_a_wrong_type_are_named(settings: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ConfigError) as error:
        EngineConfig(**settings)
    assert str(error.value) == sentence


@pytest.mark.parametrize("make", [np.array, torch.tensor, tuple], ids=["numpy", "torch", "tuple"])
def test_a_proper_permutation_of_any_kind_moves_the_blocks(make: Callable[[list[int]], Any]) -> None:
    engine = hash_engine(CONFIG)
    engine.add_request([10, 11, 12], SamplingParams(max_tokens=8), "A")
    engine.step()
    order = np.random.default_rng(1).permutation(64).tolist()
    engine.shuffle_blocks(make(order))
    engine.check_invariants()
    assert engine.snapshot().sequences["A"].block_table == [order[0]]
    while engine.has_unfinished_requests():
        engine.step()
    assert list(engine.output("A").outputs[0].token_ids) == greedy_continuation([10, 11, 12], 8)
    assert written_and_read(engine).events == engine.trace.events


@pytest.mark.parametrize(
    ("permutation", "sentence"),
    [
        ([float(i) for i in range(64)], "a permutation of blocks must be a whole number of at most 64 bits."),
        (torch.arange(64.0), "a permutation of blocks must be a whole number of at most 64 bits."),
        (list(range(63)), "a permutation names each of the 64 blocks exactly once"),
        ([0, *range(63)], "a permutation names each of the 64 blocks exactly once"),
        (5, "a permutation of blocks must be a list of at most 1000000 items."),
    ],
    ids=["floats", "torch floats", "short", "twice", "no list"],
)
def test_an_invalid_permutation_moves_nothing(permutation: Any, sentence: str) -> None:
    engine = hash_engine(CONFIG)
    engine.add_request([10, 11, 12], SamplingParams(max_tokens=8), "A")
    engine.step()
    before, events = engine.snapshot(), len(engine.trace)
    with pytest.raises(ValueError) as error:
        engine.shuffle_blocks(permutation)
    assert str(error.value) == sentence
    assert (engine.snapshot(), len(engine.trace)) == (before, events)
    while engine.has_unfinished_requests():
        engine.step()
    assert list(engine.output("A").outputs[0].token_ids) == greedy_continuation([10, 11, 12], 8)


def test_the_kv_store_refuses_an_invalid_permutation() -> None:
    store = new_kv_store(loaded("tiny-random"), num_blocks=4)
    store.key_cache.copy_(torch.arange(store.key_cache.numel()).view_as(store.key_cache))
    before = store.key_cache.clone()
    with pytest.raises(ValueError, match="must be a whole number"):
        store.permute([0.0, 1.0, 2.0, 3.0])  # type: ignore[list-item]
    assert torch.equal(store.key_cache, before)


def test_a_value_in_an_error_message_is_short_and_encodable() -> None:
    assert shown("é\ud83d") == r"'\xe9\ud83d'"
    assert shown(["x" * 100]) == "['" + "x" * 75 + "..."
    assert len(shown(list(range(1000)))) == 80
