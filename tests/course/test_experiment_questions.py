"""Questions before the experiments: right answers compared with arithmetic on the question's own figures."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache

import pytest

from course.drill import main
from course.lesson import Lesson
from course.pages import EXPERIMENTS
from course.preemption.lesson import LESSON as PREEMPTION
from course.question import Question
from course.race.lesson import LESSON as RACE
from tests.helpers.questions import kind_of

SEEDS = range(60)


@cache
def asked(experiment: Lesson) -> list[Question]:
    return [experiment.question(seed) for seed in SEEDS]


def numbers(text: object) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", str(text))]


def blocks(num_tokens: int, block_size: int) -> int:
    return (num_tokens + block_size - 1) // block_size


@pytest.mark.parametrize("experiment", EXPERIMENTS, ids=lambda experiment: experiment.key)
def test_one_right_answer_and_two_or_three_wrong_ones_each_with_a_sentence(experiment: Lesson) -> None:
    for one in asked(experiment):
        texts = [choice.text for choice in one.choices]
        assert len(set(texts)) == len(texts) in (3, 4)
        assert [choice.text for choice in one.choices if choice.is_right] == [one.draft.right]
        assert all(choice.why.endswith(".") and "\n" not in choice.why for choice in one.choices)
        assert one.prompt.endswith("?")
        assert all(len(line) < 130 for line in one.prompt.splitlines()), "one idea a line"
    assert {one.choices.index(one.right) for one in asked(experiment)} == {0, 1, 2, 3}
    assert len({one.prompt for one in asked(experiment)}) > 30


def expected(one: Question) -> list[int]:
    c, kind = one.draft.controls, kind_of(one)
    if kind == "table_after_the_move":
        places = numbers(c["permutation"])
        return [places[block] for block in numbers(c["before"])]
    if kind == "what_the_table_finds":
        places, size = numbers(c["permutation"]), int(c["size"])
        came_from = places.index(int(c["block"]))
        if came_from not in (table := numbers(c["table"])):
            return []
        first = table.index(came_from) * size
        return [first, first + size - 1]
    if kind == "one_word_differs":
        return [int(c["position"]) // int(c["block_size"])]
    if kind == "asked_twice":
        size = int(c["block_size"])
        return [(int(c["length"]) - 1) // size * size]
    if kind == "running_at_once":
        return [running(str(c["rule"]), numbers(c["lengths"]))]
    if kind == "slots_at_the_fullest":
        size = int(c["size"])
        return [size * blocks(int(c["num_prompt"]) + int(c["num_reply"]) - 1, size)]
    if kind == "swapped_entries":
        return [int(c["size"]) + int(c["written"]) % int(c["size"])]
    if kind == "skipped_copy":
        return [1]
    if kind == "who_makes_room":
        return []
    assert kind == "tokens_computed_again"
    return [int(c["held"])]


def power_of_two(at_least: int) -> int:
    return next(2**n for n in range(10) if 2**n >= at_least)


def running(rule: str, lengths: list[int]) -> int:
    """First come, first served, into 64 slots; runs of a buddy allocator are powers of two."""
    left, count = 64, 0
    for prompt, reply in zip(lengths[::2], lengths[1::2], strict=True):
        left -= {
            "Max": 32,
            "Pow2": power_of_two(prompt + power_of_two(reply)),
            "Oracle": power_of_two(prompt + reply),
            "Paged": 4 * blocks(prompt, 4),
        }[rule]
        if left < 0:
            break
        count += 1
    return count


@pytest.mark.parametrize("experiment", EXPERIMENTS, ids=lambda experiment: experiment.key)
def test_the_right_answer_is_right(experiment: Lesson) -> None:
    kinds = set()
    for one in asked(experiment):
        assert numbers(one.draft.right) == expected(one), one.prompt
        kinds.add(kind_of(one))
    twofold = {"shuffle", "sabotage", "why_not_shared", "preemption"}
    assert len(kinds) == (2 if experiment.key in twofold else 1)


def test_the_latest_arrival_is_preempted() -> None:
    answers = {one.draft.right for one in asked(PREEMPTION) if kind_of(one) == "who_makes_room"}
    assert answers == {"C"}


def test_same_seed_same_question() -> None:
    for experiment in EXPERIMENTS:
        before = asked(experiment)[7]
        again = replace(experiment).question(7)  # a record of its own: nothing is cached for it
        assert (again.prompt, again.choices) == (before.prompt, before.choices)


def test_a_sheet_asks_about_experiments_when_they_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--lesson", "race", "--seed", "3", "--reveal"]) == 0
    printed = capsys.readouterr().out
    assert "1. Race" in printed
    right = RACE.question(3).right
    assert f"{right.text}\n      Right. {right.why}" in printed
