"""Lesson "Share matching prefixes": three copies avoided, copies where they are due, and the paper's two figures."""

from __future__ import annotations

import pytest

from course.sharing import figure_8, figure_9
from course.sharing.scene import (
    PREFIX,
    asked_again,
    copy_on_write,
    two_answers,
    two_samples_by_prefix_cache,
)
from course.words import words_of
from engine.trace.events import BlockAllocated, BlockCopied, BlockFreed, BlockShared
from engine.trace.usage import block_table_of, usage_of

# Candidates 0 to 3 of figure 9, before the dotted line and below it.
CANDIDATES = ("A", "A#6", "A#7", "A#3")
NEW_CANDIDATES = ("A#6", "A#8", "A#7", "A#9")


def copies(scene):
    return [event for event in scene.trace if isinstance(event, BlockCopied)]


# ---- two answers, three shared blocks ----


def test_two_answers_share_three_blocks_and_avoid_three_copies():
    scene = two_answers()
    for value in scene.values:
        usage = usage_of(scene.at(value))
        assert (usage.num_shared_blocks, usage.num_copies_avoided) == (3, 3)
        assert usage.num_used_blocks - usage.num_shared_blocks == 2 * -(-value // 4), "private blocks"
    assert copies(scene) == [], "the prompt ends at an edge of a block"


def test_fork_and_prefix_cache_differ_by_the_recomputed_block():
    forked, found = two_answers(), two_samples_by_prefix_cache()
    assert usage_of(forked.at(1)).num_shared_blocks == 3
    assert usage_of(found.at(2)).num_shared_blocks == 2, "one token at least is computed, so 8 of 12 are reused"
    assert found.at(2).counters.prefix_cache_hits == 8


# ---- copy-on-write on the reader's own words ----

WORDS = words_of("the old ship sails home at dawn")
OTHER = words_of("sinks in deep fog")


@pytest.mark.parametrize("block_size", [1, 2, 3, 4, 5])
def test_a_fork_inside_a_block_copies_once_and_at_an_edge_never(block_size):
    scenes = copy_on_write(WORDS, OTHER, block_size)
    assert list(scenes) == list(range(1, len(WORDS)))
    for fork_at, scene in scenes.items():
        inside = fork_at % block_size
        assert [(c.step, c.num_slots, c.src_ref_cnt) for c in copies(scene)] == ([(2, inside, 1)] if inside else [])
        last = scene.at(scene.values[-1])
        assert last.sequences["A"].pieces[:-1] == list(WORDS[: len(last.sequences["A"].pieces) - 1])
        assert last.sequences["A#1"].pieces[fork_at:-1] == list(OTHER[: scene.values[-1]])
        for seq_id in ("A", "A#1"):
            held = [piece for entry in block_table_of(last, seq_id) for piece in entry.pieces]
            assert held == last.sequences[seq_id].pieces[:-1], "its own table still reads its own words"


def test_the_copy_step_by_step():
    scene = copy_on_write(WORDS, OTHER)[3]
    before, after = scene.at(0), scene.at(1)
    assert before.sequences["A"].block_table == before.sequences["A#1"].block_table == [0]
    assert before.blocks[0].ref_cnt == 2
    assert copies(scene) == [BlockCopied(2, 0, 1, "A", 0, 3, 1)]
    assert after.sequences["A"].block_table == [1]
    assert after.sequences["A#1"].block_table == [0], "the last holder writes in place"
    assert [slot.piece for slot in after.blocks[1].slots if slot] == ["the", "old", "ship", "sails"]
    assert [slot.piece for slot in after.blocks[0].slots if slot] == ["the", "old", "ship", "sinks"]


def test_prefix_cache_sharing_never_copies():
    for num_words in range(1, 9):
        scene = two_samples_by_prefix_cache(PREFIX[:num_words])
        assert copies(scene) == []
        assert usage_of(scene.at(2)).num_shared_blocks == (num_words - 1) // 4


# ---- a freed block is not erased ----


@pytest.mark.parametrize(("num_prompt", "num_hit_tokens"), [(12, 8), (11, 8), (13, 12), (3, 0)])
def test_a_prompt_that_comes_again_finds_its_freed_blocks(num_prompt, num_hit_tokens):
    scene = asked_again((*PREFIX, "please")[:num_prompt], ("Yes", "of", "course"))
    freed, restarted = scene.at(3), scene.at(4)
    assert freed.sequences["A"].block_table == []
    assert usage_of(freed).num_used_blocks == 0
    assert usage_of(freed).num_cached_blocks == (num_prompt + 2) // 4, "the last word is never written"
    assert restarted.counters.prefix_cache_hits == num_hit_tokens
    assert restarted.sequences["B"].num_computed_tokens == num_prompt
    assert restarted.requests["A"].status == "finished"


@pytest.mark.parametrize("scene", [two_answers, two_samples_by_prefix_cache])
def test_an_empty_prompt_or_answer_is_refused(scene):
    with pytest.raises(ValueError, match="these are 0"):
        scene((), (WORDS, OTHER))
    with pytest.raises(ValueError, match="these are 0"):
        scene(WORDS, (WORDS, ()))


# ---- paper, Fig. 8 ----


def test_figure_8_prompt_in_7_and_1_both_counted_twice():
    frame = figure_8.figure_8().at(figure_8.SHARED)
    assert frame.sequences["A"].block_table == frame.sequences["A#1"].block_table == [7, 1]
    assert {block.block_id: block.ref_cnt for block in frame.blocks if block.ref_cnt} == {7: 2, 1: 2}
    assert [slot.piece for slot in frame.blocks[1].slots if slot] == ["years", "ago", "our"]


def test_figure_8_copies_1_to_3_and_the_other_writes_in_place():
    scene = figure_8.figure_8()
    frame = scene.at(figure_8.COPIED)
    assert copies(scene) == [BlockCopied(2, 1, 3, "A", 1, 3, 1)]
    assert frame.sequences["A"].block_table == [7, 3]
    assert frame.sequences["A#1"].block_table == [7, 1]
    assert {block.block_id: block.ref_cnt for block in frame.blocks if block.ref_cnt} == {7: 2, 1: 1, 3: 1}
    assert [slot.piece for slot in frame.blocks[3].slots if slot] == ["years", "ago", "our", "fathers"]
    assert [slot.piece for slot in frame.blocks[1].slots if slot] == ["years", "ago", "our", "mothers"]
    assert frame.num_blocks == 9


# ---- paper, Fig. 9 ----


def tables(frame, seq_ids):
    return [frame.sequences[seq_id].block_table for seq_id in seq_ids]


def test_figure_9_before_the_dotted_line():
    frame = figure_9.figure_9().at(figure_9.BEFORE)
    assert tables(frame, CANDIDATES) == [[0, 1, 3, 5], [0, 1, 3, 6], [0, 1, 3, 7], [0, 2, 4, 8]]
    assert {block.block_id: block.ref_cnt for block in frame.blocks if block.ref_cnt} == {
        0: 4,
        1: 3,
        3: 3,
        **dict.fromkeys((2, 4, 5, 6, 7, 8), 1),
    }


def test_figure_9_frees_2_4_5_8():
    scene = figure_9.figure_9()
    step = scene.frame_of[figure_9.FREED]
    freed = {e.block_id for e in scene.trace.events_of(step) if isinstance(e, BlockFreed) and e.ref_cnt == 0}
    assert freed == {2, 4, 5, 8}
    frame = scene.at(figure_9.FREED)
    assert [frame.sequences[seq_id].finish_reason for seq_id in ("A", "A#3")] == ["beam_pruned", "beam_pruned"]
    assert tables(frame, NEW_CANDIDATES) == [[0, 1, 3, 6], [0, 1, 3, 6], [0, 1, 3, 7], [0, 1, 3, 7]]
    assert {frame.blocks[block_id].status for block_id in (2, 4, 5, 8)} == {"cached"}


def test_figure_9_allocates_9_to_12():
    scene = figure_9.figure_9()
    step = scene.frame_of[figure_9.ALLOCATED]
    assert {e.block_id for e in scene.trace.events_of(step) if isinstance(e, BlockAllocated)} == {9, 10, 11, 12}
    frame = scene.at(figure_9.ALLOCATED)
    assert tables(frame, NEW_CANDIDATES) == [
        [0, 1, 3, 6, 9],
        [0, 1, 3, 6, 10],
        [0, 1, 3, 7, 11],
        [0, 1, 3, 7, 12],
    ]
    shared = {block.block_id: block.ref_cnt for block in frame.blocks if block.ref_cnt > 1}
    assert shared == {0: 4, 1: 4, 3: 4, 6: 2, 7: 2}
    assert frame.requests["A"].status == "running"


def test_figure_9_copies_nothing_because_beams_fork_at_edges():
    scene = figure_9.figure_9()
    assert copies(scene) == []
    assert any(isinstance(event, BlockShared) and event.cause == "fork" for event in scene.trace)
