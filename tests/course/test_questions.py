"""Questions: one right answer, computed by the engine; wrong ones from known misconceptions; same seed, same question.

The right answers are compared with arithmetic on the question's own figures, which the questions never do.
"""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache
from random import Random

import pytest

from course.growth import questions as growth
from course.growth.scene import growth as growth_scene
from course.misconceptions import Misconception
from course.pages import EXPERIMENTS, LESSONS, lesson_by_key
from course.question import Draft, Wrong, finish
from course.words import passage
from engine.model.kv_cache_size import WELL_KNOWN, size_in_words
from engine.trace.events import SlotsWritten
from tests.helpers.questions import kind_of

SEEDS = range(300)
LESSON_KEYS = [lesson.key for lesson in LESSONS]


@cache
def asked(lesson):
    return [lesson_by_key(lesson).question(seed) for seed in SEEDS]


def numbers(text):
    return [int(number) for number in re.findall(r"\d+", text)]


def blocks(num_tokens, block_size):
    return (num_tokens + block_size - 1) // block_size


@pytest.mark.parametrize("lesson", LESSON_KEYS)
def test_one_right_answer_and_two_or_three_wrong_ones_all_different(lesson):
    for one in asked(lesson):
        texts = [choice.text for choice in one.choices]
        assert len(set(texts)) == len(texts) in (3, 4)
        assert sum(choice.is_right for choice in one.choices) == 1
        assert one.right.text == one.draft.right


@pytest.mark.parametrize("lesson", LESSON_KEYS)
def test_every_choice_says_why_in_one_sentence(lesson):
    for one in asked(lesson):
        for choice in one.choices:
            assert choice.why.endswith(".") and "\n" not in choice.why
            assert (choice.misconception is None) == choice.is_right
        assert one.prompt.endswith(("?", "? (Count from 0.)"))
        assert all(len(line) < 130 for line in one.prompt.splitlines()), "one idea a line"


@pytest.mark.parametrize("lesson", LESSON_KEYS)
def test_the_picture_of_the_answer_is_a_frame_of_its_scene(lesson):
    for one in asked(lesson):
        if one.draft.scene is not None:
            assert one.draft.value in one.draft.scene.values
        else:
            assert kind_of(one) == "bytes_a_token"


@pytest.mark.parametrize("lesson", LESSON_KEYS)
def test_same_seed_same_question_other_seed_other_question(lesson):
    again = replace(lesson_by_key(lesson)).question(11)  # a record of its own: nothing is cached for it
    assert (again.prompt, again.choices) == (asked(lesson)[11].prompt, asked(lesson)[11].choices)
    different = {(one.prompt, one.choices) for one in asked(lesson)}
    assert len(different) > 10
    positions = {one.choices.index(one.right) for one in asked(lesson)}
    assert positions == {0, 1, 2, 3}, "the right answer stands anywhere"


def test_every_misconception_is_offered():
    offered = {choice.misconception for lesson in LESSON_KEYS for one in asked(lesson) for choice in one.choices}
    asked_in_the_lab = [experiment.question(seed) for experiment in EXPERIMENTS for seed in range(20)]
    offered |= {choice.misconception for one in asked_in_the_lab for choice in one.choices}
    assert offered - {None} == set(Misconception)


def test_every_kind_of_question_is_asked():
    kinds = {lesson: {kind_of(one) for one in asked(lesson)[:4]} for lesson in LESSON_KEYS}
    assert {lesson: len(found) for lesson, found in kinds.items()} == {
        "what_is_cached": 2,
        "reservation": 2,
        "fragmentation": 3,
        "growth": 3,
        "block_table": 2,
        "sharing": 4,
        "batch": 3,
    }


# ---- the right answers, by other means ----


def expected(one):
    c, draft = one.draft.controls, one.draft
    match kind_of(one):
        case "tokens_with_keys_and_values":
            return c["num_prompt"] + c["num_reply"] - 1
        case "empty_slots" if "num_reserved" in c:
            return c["num_reserved"] - c["tokens"]
        case "share_of_the_reservation":
            return round(100 * (c["num_reserved"] - c["tokens"]) / c["num_reserved"])
        case "blocks_held":
            return blocks(c["tokens"], c["block_size"])
        case "empty_slots":
            return -c["tokens"] % c["block_size"]
        case "most_ever_empty":
            return c["block_size"] - 1
        case "blocks_of_two_answers":
            return c["num_prompt"] // c["block_size"] + 2 * blocks(c["words"], c["block_size"])
        case "blocks_copied":
            return int(c["num_prompt"] % c["block_size"] > 0)
        case "slots_copied" | "tokens_computed_again":
            return c["num_prompt"] % c["block_size"]
        case "slots_held":
            return sum(blocks(n, c["block_size"]) * c["block_size"] for n in numbers(c["lengths"]))
        case "gauge_at_100_percent":
            return sum(numbers(c["lengths"]))
        case "slot_of_a_token":
            writes = (e for e in draft.scene.trace if isinstance(e, SlotsWritten) and e.seq_id == "A")
            return {e.start + i: slot for e in writes for i, slot in enumerate(e.slots)}[c["position"]]
        case "can_it_start":
            return max(gaps_of(c))
        case "can_it_start_on_pages":
            return int(re.search(r"F(\d+)", c["actions"])[1]) // 2
        case "longest_gap_left":
            return longest_left(gaps_of(c), int(re.search(r"F(\d+)", c["actions"])[1]), c["allocator"])
    return None


def gaps_of(controls):
    return [int(re.search(rf"{name}(\d+)", controls["actions"])[1]) for name in "ACE"]


def longest_left(gaps, num_needed, allocator):
    chosen = 0 if allocator == "first_fit" else gaps.index(min(gaps))
    return max(gap - num_needed * (index == chosen) for index, gap in enumerate(gaps))


@pytest.mark.parametrize("lesson", LESSON_KEYS)
def test_the_right_answer_is_right(lesson):
    num_checked = 0
    for one in asked(lesson):
        wanted = expected(one)
        if wanted is not None:
            assert numbers(one.draft.right)[0] == wanted, one.prompt
            num_checked += 1
    assert num_checked >= 100


def test_blocks_are_read_in_logical_order():
    for one in asked("block_table"):
        if kind_of(one) == "order_of_reading":
            assert one.draft.right.split() == list(passage(one.draft.value))


def test_bytes_a_token_follow_the_key_value_heads():
    models = {model.name: model for model in WELL_KNOWN}
    for one in asked("what_is_cached"):
        if kind_of(one) == "bytes_a_token":
            model = models[one.draft.controls["model"]]
            wanted = 2 * model.num_layers * model.num_kv_heads * model.head_dim * 2
            assert one.draft.right == size_in_words(wanted)


def test_what_paging_saves_adds_up():
    for one in asked("batch"):
        if kind_of(one) == "percent_saved":
            lengths, block_size = numbers(one.draft.controls["lengths"]), one.draft.controls["block_size"]
            held = sum(blocks(n, block_size) * block_size for n in lengths)
            reserved = 20 * len(lengths)
            assert numbers(one.draft.right) == [sum(lengths), round(100 * (reserved - held) / reserved)]


def test_the_answer_is_read_from_the_scene(monkeypatch):
    """With an engine whose blocks are one slot larger than the question says, the answer is that engine's."""
    monkeypatch.setattr(growth, "growth", lambda words, block_size: growth_scene(words, block_size + 1))
    for seed in range(20):
        draft = growth.blocks_held(Random(seed))
        assert numbers(draft.right)[0] == blocks(draft.controls["tokens"], draft.controls["block_size"] + 1)


# ---- refusals ----


def test_a_lesson_that_does_not_ask_is_refused():
    with pytest.raises(ValueError, match="must be one of what_is_cached, reservation"):
        lesson_by_key("summary").question(1)


def test_a_draft_with_one_wrong_answer_is_refused():
    wrong = Wrong("2", "No.", Misconception.COMPRESSES)
    same_as_right = Wrong("1", "No.", Misconception.COMPRESSES)
    draft = Draft("How many?", "1", "Yes.", (wrong, wrong, same_as_right))
    with pytest.raises(ValueError, match="has 1 wrong answers"):
        finish("growth", 3, draft, Random(0))
