"""The words and tables of the experiments: where replies part, what reads found, what an edit changes."""

from __future__ import annotations

import re

import pytest

from course.race.experiment import race
from course.why_not_shared.experiment import Edit
from engine.baselines.arrivals import draw_arrivals
from engine.baselines.fragmentation import KINDS
from engine.inspect.scratch import Reply
from engine.inspect.watched_memory import Written, WrongRead
from views.elements.token_chips import difference_in_words, reply_card
from views.lab import race as race_page
from views.lab.controls import LONGEST_PROMPT, prompts_of
from views.lab.sabotage import found_by
from views.lab.why_not_shared import edited


def reply(*token_ids: int, text: str = "text") -> Reply:
    return Reply("A", token_ids, text, is_complete=True)


@pytest.mark.parametrize(
    ("tokens", "difference", "verdict"),
    [
        ((1, 2, 3), None, "The same 3 tokens."),
        ((), 0, "No tokens came; 3 were expected."),
        ((9, 2, 3), 0, "Different from the first token on."),
        ((1,), 1, "The same 1 token, then it ends."),
        ((1, 2, 9), 2, "The same 2 tokens, then a different text."),
    ],
)
def test_the_first_difference_of_two_replies(tokens: tuple[int, ...], difference: int | None, verdict: str) -> None:
    assert difference_in_words(reply(*tokens), reply(1, 2, 3), difference) == verdict


def test_a_reply_is_escaped_and_its_wrong_tokens_are_marked() -> None:
    html = reply_card("A", "a", reply(1, 2, text="<b> x"), reply(1, 3), 1, {1: "<b>", 2: " x"}.__getitem__)
    assert "&lt;b&gt; x" in html and "<b>" not in html
    assert re.findall(r'class="pv-piece ?(\w*)" dir="auto">(.*?)<', html) == [("", "&lt;b&gt;"), ("differs", "·x")]


def read(found: Written | None) -> WrongRead:
    return WrongRead(3, "A", 0, 0, 0, 7, found)


def held(seq_id: str, position: int) -> Written:
    return Written(seq_id, position, 7, 0)


@pytest.mark.parametrize(
    ("found", "words"),
    [
        ([held("B", 0), held("B", 1)], [("B's tokens 0 to 1", [7, 7])]),
        ([held("B", 4)], [("B's token 4", [7])]),
        ([held("A", 12), held("A", 13), None], [("A's tokens 12 to 13", [7, 7]), ("1 slot never written", [])]),
        ([None, None, held("A", 3)], [("2 slots never written", []), ("A's token 3", [7])]),
        ([held("A", 5), held("B", 0)], [("A's token 5", [7]), ("B's token 0", [7])]),
        ([held("A", 5), held("A", 1)], [("A's token 5", [7]), ("A's token 1", [7])]),
    ],
)
def test_reads_are_named_by_owner_in_order(found: list[Written | None], words: list[tuple[str, list[int]]]) -> None:
    assert found_by([read(f) for f in found]) == words


def test_an_edit_shows_deletions_and_insertions_with_visible_spaces() -> None:
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


def typed(lines: str, limit: int = 32) -> race_page.RaceInputs:
    return race_page.RaceInputs(race_page.TYPED, lines, 0, 0, 0, 16, 4, limit)


def test_typed_arrivals_out_of_range_are_refused_with_a_reason() -> None:
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


def test_the_race_is_compared_with_the_papers_order() -> None:
    drawn = race_page.RaceInputs(race_page.WORKLOAD.options[0], "", 40, 15, 0, 64, 4, 64)
    assert race_page.order_sentences(race_page.run_race(drawn)) == [
        race_page.SAME_ORDER,
        "For 12 of 40 requests, Pow2 set aside as many slots as Max: it rounds up the reply, and the buddy allocator "
        "then rounds up the whole reservation.",
    ]
    few = race_page.order_sentences(race_page.run_race(typed("1 5 9\n1 6 10\n2 8 8")))
    assert few[:2] == [
        "**Not the paper's order:** Pow2 held 28.7 % here and Max 28.7 %; in the paper's Fig. 2 Pow2 holds more than "
        "Max.",
        "**Not the paper's order:** Paged held 33.4 % here and Oracle 33.4 %; in the paper's Fig. 2 Paged holds more "
        "than Oracle.",
    ]
    assert few[2:4] == [race_page.NOT_CROWDED.format(name=name) for name in ("Oracle", "Paged")]


def test_arrivals_round_trip_through_text() -> None:
    inputs = race_page.RaceInputs(race_page.WORKLOAD.options[0], "", 7, 15, 4, 64, 4, 64)
    drawn = race_page.arrivals_of(inputs)
    again = race_page.arrivals_of(typed(race_page.format_arrivals(drawn), limit=64))
    sizes = [[(a.arrival_step, a.num_prompt_tokens, a.num_output_tokens) for a in side] for side in (drawn, again)]
    assert sizes[0] == sizes[1]


def test_the_tables_of_a_race_equal_the_layouts_counts() -> None:
    inputs = race_page.RaceInputs(race_page.WORKLOAD.options[0], "", 12, 20, 0, 32, 4, 64)
    lanes = race_page.run_race(inputs)
    workload = race_page.WORKLOADS[inputs.workload]
    expected = race(draw_arrivals(workload, 12, requests_per_step=2.0, max_model_len=64, seed=0), 128, 4, 64)
    split = race_page.usage_frame(lanes)
    for number, lane in enumerate(expected):
        ours = split.iloc[2 * number]
        assert [ours[race_page.NAMES_OF_KINDS[kind]] for kind in KINDS] == [
            round(lane.average_percent()[kind], 1) for kind in KINDS
        ]
    table = race_page.frame_over_steps(lanes, "Requests waiting")
    slowest = max(expected, key=lambda lane: lane.num_steps)
    assert len(table) <= race_page.MOST_ROWS + 1
    assert list(table[slowest.name]) == [slowest.num_waiting[step] for step in table["Step"]]
    paged = expected[-1]
    blank = table["Paged"].isna()
    assert list(blank) == [step > paged.num_steps for step in table["Step"]] and blank.any()
    assert {len(payload["frames"]) for payload in lanes.payloads} == {slowest.num_steps + 1}
