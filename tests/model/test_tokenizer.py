"""Tokens are bytes: every text comes back as it was, however its characters are cut."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tokenizers import Tokenizer as RustTokenizer
from tokenizers import decoders, models, normalizers

from course.scripted_engine import scripted_engine
from engine import Engine, EngineConfig
from engine.components import EngineComponents
from engine.model.load_report import ModelLoadError
from engine.model.tokenizer import ByteTokenizer, Tokenizer, load_tokenizer
from engine.runner import NoModel
from engine.sampler import LogitsSampler
from engine.trace.events import RequestAdded
from tests.helpers.model_folders import save_byte_level_tokenizer
from tests.helpers.models import loaded
from tests.helpers.texts import TEXTS


@pytest.fixture(params=["bytes", "byte-level", pytest.param("embedded", marks=pytest.mark.embedded)])
def tokenizer(request: pytest.FixtureRequest, tmp_path: Path) -> Tokenizer:
    if request.param == "bytes":
        return ByteTokenizer()
    if request.param == "embedded":
        return loaded().tokenizer
    save_byte_level_tokenizer(tmp_path)
    return load_tokenizer(tmp_path, ())


@pytest.mark.parametrize("text", TEXTS)
def test_text_survives_the_round_trip(tokenizer: Tokenizer, text: str) -> None:
    token_ids = tokenizer.encode(text)
    assert tokenizer.decode(token_ids) == text
    assert b"".join(tokenizer.piece(i) for i in token_ids) == text.encode()


def test_special_tokens_are_left_out_unless_asked_for(tokenizer: Tokenizer) -> None:
    (eos,) = tokenizer.eos_token_ids
    token_ids = [*tokenizer.encode("fox"), eos]
    assert tokenizer.is_special(eos) and not tokenizer.is_special(token_ids[0])
    assert tokenizer.decode(token_ids) == "fox"
    assert tokenizer.decode(token_ids, skip_special_tokens=False) == "fox" + tokenizer.display(eos)


def test_a_lone_surrogate_is_replaced(tokenizer: Tokenizer) -> None:
    assert tokenizer.decode(tokenizer.encode("a\ud83db")) == "a?b"


def test_ids_without_a_token_add_no_text_and_are_displayed_as_numbers(tokenizer: Tokenizer) -> None:
    unknown = tokenizer.vocab_size + 1000
    assert (tokenizer.piece(unknown), tokenizer.decode([unknown])) == (b"", "")
    assert tokenizer.display(unknown) == f"[{unknown}]"


def test_an_engine_shows_the_number_of_an_id_without_a_token(tmp_path: Path) -> None:
    save_byte_level_tokenizer(tmp_path)  # 259 tokens; the embedding has 300 rows
    components = EngineComponents(load_tokenizer(tmp_path, ()), NoModel(), LogitsSampler(), None, 300, {})
    engine = Engine(EngineConfig(), components)
    engine.add_request([280, 0])
    assert [event.pieces for event in engine.trace if isinstance(event, RequestAdded)] == [("[280]", "!")]


def test_a_scripted_tokenizer_knows_only_its_own_ids() -> None:
    engine = scripted_engine(EngineConfig(), {"A": ["fox"]})
    engine.add_request([5, 0])
    assert [event.pieces for event in engine.trace if isinstance(event, RequestAdded)] == [("[5]", "fox")]


def test_an_entry_outside_the_byte_alphabet_is_its_own_text(tmp_path: Path) -> None:
    save_byte_level_tokenizer(tmp_path)
    written = json.loads((tmp_path / "tokenizer.json").read_text("utf-8"))
    written["model"]["vocab"] |= {"●": 257, "a b": 258}
    (tmp_path / "tokenizer.json").write_text(json.dumps(written), "utf-8")
    tokenizer = load_tokenizer(tmp_path, ())
    assert [tokenizer.piece(i) for i in (257, 258)] == ["●".encode(), b"a b"]
    assert [tokenizer.display(i) for i in (257, 258)] == ["●", "a b"]
    theirs = RustTokenizer.from_file(str(tmp_path / "tokenizer.json"))
    assert tokenizer.decode([0, 257, 258, 1]) == theirs.decode([0, 257, 258, 1]) == '!●a b"'


def test_a_part_of_a_character_is_displayed_as_its_bytes() -> None:
    tokenizer = ByteTokenizer()
    assert [tokenizer.display(i) for i in tokenizer.encode("é!")] == ["\\xc3", "\\xa9", "!"]


def test_byte_tokenizer_adds_nothing() -> None:
    assert ByteTokenizer().encode("é") == [0xC3, 0xA9]
    assert (ByteTokenizer.vocab_size, ByteTokenizer.bos_token_id, ByteTokenizer.eos_token_id) == (258, 256, 257)


def test_a_text_s_ends_come_from_the_caller_or_else_from_the_folder(tmp_path: Path) -> None:
    save_byte_level_tokenizer(tmp_path)
    assert load_tokenizer(tmp_path, (3, 4)).eos_token_ids == (3, 4)
    assert load_tokenizer(tmp_path, ()).eos_token_ids == (258,)
    assert load_tokenizer(tmp_path, ()).bos_token_id == 257


def test_sentencepiece_vocabularies_with_byte_fallback(tmp_path: Path) -> None:
    pieces = {"<unk>": 0, "<0xE6>": 1, "<0x97>": 2, "<0xA5>": 3, "▁": 4, "▁fox": 5, "f": 6, "o": 7, "x": 8, "fo": 9}
    pieces |= {"<0xGG>": 11, "<0x 1>": 12}
    vocabulary = RustTokenizer(
        models.BPE(pieces | {"fox": 10}, [("f", "o"), ("fo", "x"), ("▁", "fox")], unk_token="<unk>", byte_fallback=True)
    )
    vocabulary.normalizer = normalizers.Replace(" ", "▁")
    vocabulary.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()])
    vocabulary.save(str(tmp_path / "tokenizer.json"))
    tokenizer = load_tokenizer(tmp_path, (0,))
    assert tokenizer.encode("fox fox日") == [10, 5, 1, 2, 3]
    assert tokenizer.decode([10, 5, 1, 2, 3]) == "fox fox日"
    assert tokenizer.display(2) == "\\x97"
    assert [tokenizer.display(i) for i in (11, 12)] == ["<0xGG>", "<0x 1>"]


def test_a_folder_without_tokenizer_is_refused(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "llama"}), "utf-8")
    with pytest.raises(ModelLoadError, match=r"has no tokenizer\.json"):
        load_tokenizer(tmp_path, ())


@pytest.mark.embedded
def test_embedded_tokenizer_is_transformers_own(tmp_path: Path) -> None:
    from transformers import AutoTokenizer

    from engine.model.load_report import ignore_progress
    from engine.model.weights.embedded import embedded_folder

    theirs = AutoTokenizer.from_pretrained(embedded_folder(ignore_progress))
    ours = loaded().tokenizer
    messages = [{"role": "user", "content": "Hi <b>there</b> & you"}, {"role": "assistant", "content": "Yes?"}]
    assert ours.render_chat(messages) == theirs.apply_chat_template(
        messages, tokenize=False, add_generation_prompt=True
    )
    for text in (*TEXTS, ours.render_chat(messages)):
        assert ours.encode(text) == theirs(text).input_ids
        assert ours.decode(ours.encode(text)) == theirs.decode(theirs(text).input_ids, skip_special_tokens=True)
