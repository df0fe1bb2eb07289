"""The exercise sheet: questions without answers, answers on request, the same sheet for the same seed."""

from __future__ import annotations

import subprocess
import sys

import pytest

from course.drill import main
from course.pages import LESSONS


def run(capsys, *arguments):
    assert main(arguments) == 0
    return capsys.readouterr().out


def test_the_sheet_covers_every_lesson_without_answers(capsys):
    sheet = run(capsys, "--seed", "7")
    for lesson in LESSONS:
        asked = lesson.question(7)
        assert all(line in sheet for line in asked.prompt.splitlines())
        assert all(choice.text in sheet for choice in asked.choices)
    assert "Right." not in sheet
    assert "Wrong." not in sheet
    assert sheet == run(capsys, "--seed", "7")
    assert sheet != run(capsys, "--seed", "8")


def test_reveal_marks_one_answer_a_question_with_its_reason(capsys):
    lines = run(capsys, "--seed", "7", "--reveal").splitlines()
    assert sum(line.strip().startswith("Right.") for line in lines) == len(LESSONS)
    for number, lesson in enumerate(LESSONS, 1):
        right = lesson.question(7).right
        start = lines.index(f"{number}. {lesson.short_name}")
        index = next(i for i, line in enumerate(lines) if i > start and line.endswith(f") {right.text}"))
        assert lines[index + 1].strip() == f"Right. {right.why}"


def test_one_lesson_several_times(capsys):
    sheet = run(capsys, "--lesson", "growth", "--count", "3")
    assert [line for line in sheet.splitlines() if line[:1].isdigit()] == ["1. Pages", "2. Pages", "3. Pages"]


@pytest.mark.parametrize("arguments", [("--count", "0"), ("--count", "x"), ("--lesson", "none"), ("--seed", "1.5")])
def test_bad_options_are_refused_with_a_reason(capsys, arguments):
    with pytest.raises(SystemExit) as stopped:
        main(arguments)
    assert stopped.value.code == 2
    assert "error: argument" in capsys.readouterr().err


def test_it_runs_as_a_module():
    command = [sys.executable, "-m", "course.drill", "--seed", "7", "--lesson", "growth", "--reveal"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=True)
    assert done.stdout.startswith("Paged attention: exercises, seed 7\n")
    assert done.stderr == ""
