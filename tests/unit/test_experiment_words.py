"""The words and tables of the experiments: where replies part, what reads found, what an edit changes."""

from __future__ import annotations

import re
from dataclasses import dataclass

import pytest

from engine.arrivals import draw_arrivals
from engine.lab.race import race
from engine.lab.watched_memory import Written, WrongRead
from engine.lab.why_not_shared import Edit
from engine.waste import KINDS
from views.experiments import race as race_page
from views.experiments.controls import LONGEST_PROMPT, prompts_of
from views.experiments.replies import reply_beside, verdict_of
from views.experiments.sabotage import _sources
from views.experiments.why_not_shared import edited


@dataclass(frozen=True)
class Reply:
    token_ids: tuple[int, ...]
    text: str = "text"


@pytest.mark.parametrize(
    ("tokens", "difference", "verdict"),
    [
        ((1, 2, 3), None, "The same 3 tokens."),
        ((), 0, "Nothing came; it should have 3 tokens."),
        ((9, 2, 3), 0, "Another text from the first token on."),
        ((1,), 1, "The same 1 token, then nothing more."),
        ((1, 2, 9), 2, "The same 2 tokens, then another text."),
    ],
)
def test_where_two_replies_part(tokens: tuple[int, ...], difference: int | None, verdict: str) -> None:
    assert verdict_of(Reply(tokens), Reply((1, 2, 3)), difference) == verdict


def test_a_reply_is_escaped_and_its_wrong_tokens_are_marked() -> None:
    html = reply_beside("A", "a", Reply((1, 2), "<b> x"), Reply((1, 3)), 1, {1: "<b>", 2: " x"}.__getitem__)
    assert "&lt;b&gt; x" in html and "<b>" not in html
    assert re.findall(r'class="pv-piece (\w*)">(.*?)<', html) == [("", "&lt;b&gt;"), ("differs", "·x")]


def read(found: Written | None) -> WrongRead:
    return WrongRead(3, "A", 0, 0, 0, 7, found)


def held(seq_id: str, position: int) -> Written:
    return Written(seq_id, position, 7, 0)


@pytest.mark.parametrize(
    ("found", "words"),
    [
        ([held("B", 0), held("B", 1)], "B's tokens 0 to 1"),
        ([held("B", 4)], "B's token 4"),
        ([held("A", 12), held("A", 13), None], "A's tokens 12 to 13, never written"),
        ([None], "never written"),
        ([held("A", 5), held("B", 0)], "A's token 5, B's token 0"),
        ([held("A", 5), held("A", 1)], "A's token 5, A's token 1"),
    ],
)
def test_what_a_read_found_is_named_in_runs(found: list[Written | None], words: str) -> None:
    assert _sources([read(f) for f in found]) == words


def test_an_edit_shows_what_goes_and_what_comes_with_visible_blanks() -> None:
    html = edited(" The <b> fox", Edit("The <b> red fox", 5, 1))
    assert "<del>·</del>" in html
    assert re.sub(r"<del>.*?</del>|</?ins>|</?div[^>]*>", "", html).replace("·", " ") == "The &lt;b&gt; red fox"


def test_prompts_are_lines_and_bounded() -> None:
    assert prompts_of("a\n\n \n b\t", 2) == ("a", " b\t")
    with pytest.raises(ValueError, match="Type 1 to 2 prompts, one a line; these are 0"):
        prompts_of(" \n", 2)
    with pytest.raises(ValueError, match="these are 3"):
        prompts_of("a\nb\nc", 2)
    with pytest.raises(ValueError, match=f"at most {LONGEST_PROMPT} characters here; one of these has 301"):
        prompts_of("x" * 301, 2)


def typed(lines: str, limit: int = 32) -> race_page.Inputs:
    return race_page.Inputs(race_page.TYPED, lines, 0, 0, 0, 16, 4, limit)


def test_typed_arrivals_are_bounded_in_words() -> None:
    assert [a.num_tokens for a in race_page.arrivals_of(typed("1 5 9\n\n2 6 10"))] == [14, 16]
    for lines, problem in (
        ("", "these are 0"),
        ("1 5 5\n" * 61, "these are 61"),
        ("1 20 20", "r0 has 40 tokens with its reply; the longest request allowed has 32"),
        ("301 5 5", "r0 arrives in step 301; the last is 300"),
        ("1 x 5", "Line 1 must be three whole numbers"),
    ):
        with pytest.raises(ValueError, match=problem):
            race_page.arrivals_of(typed(lines))


def test_arrivals_survive_being_written_down() -> None:
    inputs = race_page.Inputs(race_page.WORKLOAD.options[0], "", 7, 15, 4, 64, 4, 64)
    drawn = race_page.arrivals_of(inputs)
    again = race_page.arrivals_of(typed(race_page.as_lines(drawn), limit=64))
    sizes = [[(a.arrival_step, a.num_prompt_tokens, a.num_output_tokens) for a in side] for side in (drawn, again)]
    assert sizes[0] == sizes[1]


def test_the_tables_of_a_race_are_the_lanes_own_counts() -> None:
    inputs = race_page.Inputs(race_page.WORKLOAD.options[0], "", 12, 20, 0, 32, 4, 64)
    lanes = race_page.run_race(inputs)
    workload = race_page.WORKLOADS[inputs.workload]
    expected = race(draw_arrivals(workload, 12, requests_per_step=2.0, max_model_len=64, seed=0), 128, 4, 64)
    split = race_page.split_frame(lanes)
    for number, lane in enumerate(expected):
        ours = split.iloc[2 * number]
        assert [ours[race_page.NAMES_OF_KINDS[kind]] for kind in KINDS] == [
            round(lane.average_percent()[kind], 1) for kind in KINDS
        ]
    table = race_page.over_time(lanes, "Requests waiting")
    slowest = max(expected, key=lambda lane: lane.num_steps)
    assert len(table) <= race_page.MOST_ROWS + 1
    assert list(table[slowest.name]) == [slowest.num_waiting[step] for step in table["Step"]]
    paged = expected[-1]
    blank = table["Paged"].isna()
    assert list(blank) == [step > paged.num_steps for step in table["Step"]] and blank.any()
    assert {len(payload["frames"]) for payload in lanes.payloads} == {slowest.num_steps + 1}
