"""One slot: token, readers, arithmetic, bytes, and the numbers that are really there."""

from __future__ import annotations

import pytest

from course.scripted_engine import scripted_engine
from engine import Engine, EngineConfig, SamplingParams
from engine.inspect.scratch import components_factory
from engine.inspect.slot_microscope import look_at_slot, place_in_words
from engine.model.kv_store import KVStore
from tests.helpers.models import loaded

CONFIG = EngineConfig(
    model="tiny-random", block_size=4, num_blocks=9, free_order=(6, 1, 8), attention_backend="reference"
)


@pytest.fixture
def engine() -> Engine:
    """Two samples of a 10-token prompt, both a token further: blocks 6 and 1 shared, 8 copied to 0."""
    engine = Engine(CONFIG, components_factory(loaded("tiny-random"))(CONFIG))
    engine.add_request("0123456789", SamplingParams(max_tokens=5, ignore_eos=True, n=2, temperature=1.0))
    engine.step()
    engine.step()
    return engine


def test_a_shared_slot(engine: Engine) -> None:
    view = look_at_slot(engine, slot=1 * 4 + 2, layer=1, kv_head=1)
    assert view.content is not None and (view.content.position, view.content.piece) == (6, "6")
    assert (view.block_id, view.offset, view.block_status, view.ref_cnt) == (1, 2, "used", 2)
    assert [reader.seq_id for reader in view.readers] == ["A", "A#1"] and view.request_ids == ("A",)
    reader = view.readers[0]
    assert (reader.position, reader.logical_index, reader.offset, reader.block_id, reader.slot) == (6, 1, 2, 1, 6)
    assert not view.is_stale


def test_the_numbers_are_the_bytes_at_that_offset(engine: Engine) -> None:
    store = engine.components.store
    assert isinstance(store, KVStore)
    view = look_at_slot(engine, slot=6, layer=1, kv_head=1)
    assert view.place.shape == (2, 9, 4, 2, 16) and view.place.strides == (1152, 128, 32, 16, 1)
    assert view.place.element_offset == 1 * 1152 + 1 * 128 + 2 * 32 + 1 * 16 == 1360
    assert (view.place.byte_offset, view.place.num_bytes, view.place.dtype) == (5440, 64, "float32")
    assert place_in_words(view.place) == "(1 * 1152 + 1 * 128 + 2 * 32 + 1 * 16) * 4 bytes = byte 5440"
    assert view.key == tuple(store.key_cache.view(-1)[1360:1376].tolist())
    assert view.value == tuple(store.value_cache.view(-1)[1360:1376].tolist())
    raw = store.key_cache.numpy().tobytes()[5440 : 5440 + 64]
    assert memoryview(raw).cast("f").tolist() == list(view.key)
    assert any(view.key) and any(view.value)


def test_an_allocated_empty_slot_and_one_with_old_content(engine: Engine) -> None:
    empty = look_at_slot(engine, slot=8 * 4 + 3, layer=0, kv_head=0)
    assert empty.content is None and empty.readers == () and empty.block_status == "used" and not empty.is_stale
    assert not any(empty.key)
    engine.abort_request("A")
    left = look_at_slot(engine, slot=8 * 4 + 1, layer=0, kv_head=0)
    assert left.content is not None and left.is_stale and left.block_status == "free" and any(left.key)
    cached = look_at_slot(engine, slot=6 * 4, layer=0, kv_head=0)
    assert cached.block_status == "cached" and cached.is_stale


@pytest.mark.parametrize(("slot", "layer", "head"), [(36, 0, 0), (-1, 0, 0), (0, 2, 0), (0, 0, 2)])
def test_a_location_that_does_not_exist_is_refused(engine: Engine, slot: int, layer: int, head: int) -> None:
    with pytest.raises(IndexError, match="There is no"):
        look_at_slot(engine, slot, layer, head)


def test_a_scripted_model_has_no_tensors() -> None:
    with pytest.raises(ValueError, match="script"):
        look_at_slot(scripted_engine(CONFIG, {}), 0, 0, 0)
