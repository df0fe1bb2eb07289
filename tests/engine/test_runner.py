"""The batch as tensors, and logits in the order they were asked for."""

from __future__ import annotations

import torch

from engine.batch import BatchInputs, PaddedTables
from engine.kv_cache.manager import slots_of
from engine.runner import ModelRunner
from tests.helpers.models import Item, Tokens, loaded, new_kv_store, paged_logits

A, B = Tokens([10, 11, 12, 13, 14, 15, 16]), Tokens([20, 21, 22])


def test_prefill_chunk_and_decode_lie_side_by_side() -> None:
    items = [Item(A, 2, 4, [5, 1, 9], needs_logits=False), Item(B, 2, 1, [7])]
    inputs = BatchInputs(3).prepare(items)
    assert inputs.input_ids.tolist() == [12, 13, 14, 15, 22]
    assert inputs.positions.tolist() == [2, 3, 4, 5, 2]
    assert inputs.slot_mapping.tolist() == [5 * 3 + 2, 1 * 3 + 0, 1 * 3 + 1, 1 * 3 + 2, 7 * 3 + 2]
    assert inputs.query_start_loc.tolist() == [0, 4, 5]
    assert inputs.seq_lens.tolist() == [6, 3]
    assert inputs.block_table.tolist() == [[5, 1, 9, 0], [7, 0, 0, 0]]
    assert inputs.logits_indices.tolist() == [4]
    assert inputs.slot_mapping.dtype is torch.int64
    assert {inputs.block_table.dtype, inputs.seq_lens.dtype, inputs.query_start_loc.dtype} == {torch.int32}


def test_slots_follow_the_block_table() -> None:
    assert slots_of([6, 1, 8], 3, 9, block_size=4) == [27, 4, 5, 6, 7, 32]
    assert slots_of([3, 0], 0, 2, block_size=1) == [3, 0]


def test_block_tables_stay_where_they_are_and_follow_every_change() -> None:
    """Appended to, copied on write, swapped in place, given to another sequence, grown past the room there was."""
    tables = PaddedTables()
    a, b = [5, 1, 9], [7]
    address = tables.of([a, b]).data_ptr()
    a.append(4)
    b[-1] = 8
    assert tables.of([a, b]).tolist() == [[5, 1, 9, 4], [8, 0, 0, 0]]
    a[0], a[-1] = a[-1], a[0]
    assert tables.of([a, b]).tolist() == [[4, 1, 9, 5], [8, 0, 0, 0]]
    assert tables.of([b])[0, 0] == 8
    batch = tables.of([b, a])
    assert (batch[0, 0], batch[1].tolist(), batch.data_ptr()) == (8, a, address)
    a.append(6)
    batch = tables.of([b, a, [2]])
    assert batch.shape == (3, 8) and batch.is_contiguous()
    assert (batch[0, 0], batch[1, :5].tolist(), batch[2, 0]) == (8, a, 2)


def test_a_row_that_did_not_change_is_not_written() -> None:
    tables = PaddedTables()
    table = [5, 1]
    tables.of([table]).fill_(77)
    assert tables.of([table]).tolist() == [[77, 77]]
    table.append(3)
    assert tables.of([table]).tolist() == [[5, 1, 3, 0]]


def test_logits_rows_are_in_the_order_of_the_items() -> None:
    model = loaded("tiny-random")
    runner = ModelRunner(model.model, new_kv_store(model, block_size=3))
    a, b, c = Tokens([1, 2, 3, 4]), Tokens([5, 6]), Tokens([7, 8, 9])
    rows = runner.run([Item(c, 0, 3, [4]), Item(a, 0, 2, [0, 1], needs_logits=False), Item(b, 0, 2, [3])])
    assert rows.shape == (2, model.config.vocab_size) and rows.dtype is torch.float32
    for row, tokens in zip(rows, (c, b), strict=True):
        alone = paged_logits(model, tokens.token_ids, [len(tokens.token_ids)])[0]
        torch.testing.assert_close(row, alone, atol=1e-5, rtol=0)


def test_no_row_is_computed_when_none_is_needed() -> None:
    model = loaded("tiny-random")
    runner = ModelRunner(model.model, new_kv_store(model))
    assert runner.run([Item(A, 0, 3, [0, 1], needs_logits=False)]).shape == (0, model.config.vocab_size)


def test_logits_may_be_changed_in_place_by_the_sampler() -> None:
    model = loaded("tiny-random")
    logits = ModelRunner(model.model, new_kv_store(model)).run([Item(B, 0, 3, [0])])
    assert not logits.requires_grad
    logits.div_(2.0)
