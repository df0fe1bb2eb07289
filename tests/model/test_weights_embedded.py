"""The embedded model from its file to its words: cached, healed, offline, and in four bits as good as dequantised."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F

from engine.batch import BatchInputs
from engine.model.linear import FEW_TOKENS
from engine.model.llama import build_model
from engine.model.load_report import Progress, ProgressCallback, ignore_progress
from engine.model.weights.embedded import WEIGHTS_FILE, embedded_folder, embedded_source
from engine.model.weights.hub import read_config
from engine.model.weights.load import LoadedModel, load_model
from engine.runner import ModelRunner
from tests.helpers.models import CPU, Item, Tokens, loaded, new_kv_store
from tests.helpers.prose import PROSE
from tests.helpers.tiny_gguf import write_tiny_gguf


class TinyFetch:
    """A few kilobytes in the place of the download, in the very same form."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, folder: Path, _progress: ProgressCallback) -> Path:
        self.calls += 1
        write_tiny_gguf(folder / "tiny.gguf")
        return folder / "tiny.gguf"


@pytest.fixture
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PAGED_KV_CACHE_DIR", str(tmp_path))


@pytest.mark.usefixtures("own_cache")
def test_converted_once_and_never_fetched_again() -> None:
    fetch, seen = TinyFetch(), list[Progress]()
    folder = embedded_folder(seen.append, fetch)
    assert embedded_folder(seen.append, fetch) == folder
    assert fetch.calls == 1
    assert [p.fraction for p in seen] == [0.0, 1.0]
    assert not list(folder.glob("*.gguf"))
    model = build_model(read_config(folder), embedded_source(folder, torch.float32, CPU))
    assert len(model.layers) == 2


@pytest.mark.usefixtures("own_cache")
def test_a_flipped_bit_in_the_cache_is_detected_and_repaired() -> None:
    fetch = TinyFetch()
    weights = embedded_folder(ignore_progress, fetch) / WEIGHTS_FILE
    whole = weights.read_bytes()
    weights.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    assert (embedded_folder(ignore_progress, fetch) / WEIGHTS_FILE).read_bytes() == whole
    assert fetch.calls == 2


@pytest.mark.embedded
def test_a_later_start_needs_neither_network_nor_transformers() -> None:
    loaded()  # it is cached from here on
    program = (
        "import sys, subprocess\n"
        "subprocess.Popen = None\n"  # no pip
        "from engine.model.weights.load import load_model\n"
        "model = load_model('smollm2-135m-instruct')\n"
        "assert model.tokenizer.chat_template is not None\n"
        "slow = {'transformers', 'huggingface_hub', 'gguf'} & set(sys.modules)\n"
        "sys.exit(f'imported {slow}' if slow else 0)"
    )
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300)
    assert result.returncode == 0, result.stderr


@torch.no_grad()
def perplexity(model: LoadedModel, text: str, chunk: int) -> float:
    """How many tokens the model hesitates between, on average, at each token of the text, read in chunks."""
    token_ids = model.tokenizer.encode(text)
    store = new_kv_store(model, num_blocks=64, block_size=16, backend="auto", dtype=model.model.dtype)
    hidden = []
    for start in range(0, len(token_ids), chunk):
        item = Item(Tokens(token_ids), start, min(chunk, len(token_ids) - start), list(range(64)))
        hidden.append(model.model.forward(BatchInputs(16).prepare([item]), store))
    logits = model.model.compute_logits(torch.cat(hidden))
    return float(F.cross_entropy(logits[:-1], torch.tensor(token_ids[1:])).exp())


@pytest.mark.embedded
def test_four_bits_predict_as_well_as_dequantised_float32() -> None:
    """In chunks of few tokens and of many: torch multiplies the latter unpacked, where our own kernel cannot run."""
    exact = perplexity(loaded(dtype="float32"), PROSE, chunk=256)
    assert 1 < exact < 100
    few, many = (perplexity(loaded(dtype="int4"), PROSE, chunk) for chunk in (FEW_TOKENS, 256))
    assert few == pytest.approx(exact, rel=0.01)
    assert many == pytest.approx(exact, rel=0.01)


@pytest.mark.embedded
def test_int4_weights_answer_a_question() -> None:
    model = load_model("smollm2-135m-instruct", dtype="int4")
    question = model.tokenizer.render_chat([{"role": "user", "content": "What is 2 + 2?"}])
    tokens = Tokens(model.tokenizer.encode(question))
    num_prompt_tokens, start = len(tokens.token_ids), 0
    runner = ModelRunner(model.model, new_kv_store(model, backend="auto", dtype=model.model.dtype))
    while tokens.token_ids[-1] not in model.tokenizer.eos_token_ids or start < num_prompt_tokens:
        item = Item(tokens, start, len(tokens.token_ids) - start, list(range(64)))
        start = len(tokens.token_ids)
        tokens.token_ids.append(int(runner.run([item]).argmax()))
        assert start < num_prompt_tokens + 40, model.tokenizer.decode(tokens.token_ids[num_prompt_tokens:])
    assert model.tokenizer.decode(tokens.token_ids[num_prompt_tokens:]).endswith(" 4.")
