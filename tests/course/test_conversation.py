"""The three requests of several lessons: their words, and what they hold with and without a prefix cache."""

from __future__ import annotations

import pytest

from course.batch.scene import batch
from course.block_table.scene import chat_requests
from course.conversation import CONVERSATION, SECOND_TURN, SYSTEM_PROMPT, conversation, play_conversation
from course.waste_between.scene import CHAT, CHAT_SLOTS, CHAT_WORDS, fragmentation
from course.words import words_of
from engine.baselines.fragmentation import free_extents, waste
from engine.trace.events import BlockCopied
from engine.trace.usage import block_table_of, usage_of


def test_each_request_stores_its_own_words_in_three_tables():
    last = chat_requests().at(9)
    for name, request in zip("ABC", CONVERSATION, strict=True):
        held = [piece for entry in block_table_of(last, name) for piece in entry.pieces]
        assert held == [*SYSTEM_PROMPT, *request.question, *request.reply]
    assert [len(last.sequences[name].block_table) for name in "ABC"] == [6, 6, 6]
    assert usage_of(last).num_shared_blocks == 0


def test_blocks_of_the_three_lie_scattered_and_move_with_their_tables():
    last, shuffled = chat_requests().at(9), chat_requests(shuffle_seed=3)
    table = last.sequences["A"].block_table
    assert list(table) != sorted(table)
    moved = shuffled.at(10).sequences["A"]
    assert (list(moved.block_table) != list(table), moved.pieces) == (True, last.sequences["A"].pieces)


def test_the_prefix_cache_stores_the_system_prompt_once():
    scene = conversation(block_size=4, num_blocks=18, way="prefix_cache")
    for value, avoided in ((1, 0), (2, 3), (3, 6), (9, 6)):
        usage = usage_of(scene.at(value))
        assert (usage.num_copies_avoided, usage.num_shared_blocks) == (avoided, 3 if avoided else 0)
    last = scene.at(9)
    assert last.counters.prefix_cache_hits == 2 * len(SYSTEM_PROMPT) == 24
    assert usage_of(last).num_used_blocks == 3 * 6 - 6
    assert len({tuple(last.sequences[name].block_table[:3]) for name in "ABC"}) == 1
    assert not any(isinstance(event, BlockCopied) for event in scene.trace)


def test_a_pool_too_small_for_the_three_is_refused():
    with pytest.raises(ValueError, match=r"^The three requests need 18 blocks of 4; the pool has 17\.$"):
        play_conversation(block_size=4, num_blocks=17)


def test_the_second_turn_finds_gaps_that_are_too_short_and_blocks_that_are_not():
    both = fragmentation(CHAT, num_slots=CHAT_SLOTS, words=CHAT_WORDS)
    before, refused = both.contiguous.at(4), both.contiguous.at(5)
    assert [gap.num_slots for gap in free_extents(before)] == [23, 29]
    assert refused.requests["D"].reason == "52 slots free, longest gap 29, need 33"
    assert SECOND_TURN.words == (*CONVERSATION[0].words, *words_of("How far is it ? About one hour on foot"))
    assert both.paged.at(5).sequences["D"].pieces == list(SECOND_TURN.words)


def test_the_batch_holds_the_words():
    both = batch([request.words for request in CONVERSATION], num_reserved=32)
    assert both.paged.at(3).sequences["R3"].pieces == list(CONVERSATION[2].words)
    counted = waste(both.contiguous.at(3)), waste(both.paged.at(3))
    assert [(of.num_held, of.token_states) for of in counted] == [(96, 67), (72, 67)]
