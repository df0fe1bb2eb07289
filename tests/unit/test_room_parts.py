"""The parts of a room without an engine: codes, limits, names, places, answers, reach."""

from __future__ import annotations

import pytest

from views.room import codes
from views.room.answers import Answers, QuestionName
from views.room.lateness import Lateness
from views.room.limits import Limits, RefusedError, Spent
from views.room.member import is_member_id, name_from
from views.room.place import Place, place_from
from views.room.reach import EXPOSED, ONLY_HERE, reach_of
from views.room.settings import RoomSettings, settings_from

PRIVATE_AND_OTHERS = "prompt=a+b&engine=key&run=xyz&room=R&follow=f&n="


def test_the_code_follows_from_the_token_and_is_easy_to_read_out() -> None:
    assert codes.code_of("a token") == codes.code_of("a token") == "7AF64YM6"
    assert codes.code_of("a tokem") != codes.code_of("a token")
    assert codes.shown("7AF64YM6") == "7AF6-4YM6"


@pytest.mark.parametrize("typed", ["7af6-4ym6", " 7AF6 4YM6 ", "7AF64YM6", "7 a f 6 4 y m 6"])
def test_a_code_may_be_typed_in_many_ways(typed: str) -> None:
    assert codes.code_from(typed) == "7AF64YM6"


def test_letters_that_look_like_digits_are_taken_for_them_and_longer_codes_stay_wrong() -> None:
    assert codes.code_from("oIl0") == "0110"
    assert codes.code_from("7AF64YM6A") == "7AF64YM6A"


def test_tokens_and_members_are_long_and_never_the_same() -> None:
    assert len({codes.new_token() for _ in range(100)}) == 100
    assert all(is_member_id(codes.new_member_id()) for _ in range(100))
    assert not is_member_id("short")
    assert not is_member_id("x" * 22 + "<")


@pytest.mark.parametrize(
    ("prompt", "max_tokens", "sentence"),
    [
        ("  \n", 4, "The prompt is empty. Type a few words first."),
        ("x" * 301, 4, "Your prompt has 301 characters; the most is 300."),
        ("x", 49, "A reply has 1 to 48 new tokens here; you asked for 49."),
        ("x", 0, "A reply has 1 to 48 new tokens here; you asked for 0."),
    ],
)
def test_a_prompt_of_a_wrong_length_is_refused(prompt: str, max_tokens: int, sentence: str) -> None:
    with pytest.raises(RefusedError) as refusal:
        Limits().check_length(prompt, max_tokens)
    assert str(refusal.value) == sentence


@pytest.mark.parametrize(
    ("spent", "sentence"),
    [
        (Spent(3, 40, 2), "2 of your prompts are under way, the most at once. Wait for one to end."),
        (Spent(20, 40, 0), "You have sent 20 prompts, the most until the presenter resets."),
        (Spent(9, 595, 0), "Each person may have 600 new tokens and you have 5 left: ask for 5 or fewer."),
        (Spent(9, 600, 0), "Each person may have 600 new tokens and you have 0 left: wait until the presenter resets."),
    ],
)
def test_a_share_that_is_used_up_is_said_in_one_sentence(spent: Spent, sentence: str) -> None:
    with pytest.raises(RefusedError) as refusal:
        Limits().check_share(spent, 6)
    assert str(refusal.value) == sentence


def test_the_last_token_of_a_share_can_be_had() -> None:
    Limits().check_share(Spent(19, 594, 1), 6)


@pytest.mark.parametrize(
    ("typed", "name"),
    [
        ("  Ada   Lovelace ", "Ada Lovelace"),
        ("a\nb\x00c\u202ed", "a b c d"),
        ("\u200b", ""),
        ("x" * 30, "x" * 24),
        ("<b>Ada</b>", "<b>Ada</b>"),
    ],
)
def test_a_name_is_one_short_line_that_can_be_seen(typed: str, name: str) -> None:
    assert name_from(typed) == name


@pytest.mark.parametrize(
    ("told", "place"),
    [
        ({"path": "batch", "query": "requests=3"}, Place("batch", "requests=3")),
        ({"path": "", "query": ""}, Place("")),
        ({"path": "batch"}, Place("batch")),
        ({"path": "live_engine", "query": PRIVATE_AND_OTHERS}, Place("live_engine", "prompt=a+b&n=")),
        ({"path": "https://elsewhere.example"}, None),
        ({"path": "../batch"}, None),
        ({"path": "batch", "query": "x" * 4001}, None),
        ({"path": "batch", "query": "&".join(f"a{n}=1" for n in range(41))}, None),
        ({"path": 3}, None),
        ({"path": "batch", "query": ["requests=3"]}, None),
        ("batch", None),
        (None, None),
    ],
)  # fmt: skip
def test_a_place_is_a_page_of_ours_and_never_carries_what_is_one_tabs_own(told: object, place: Place | None) -> None:
    assert place_from(told) == place


def test_the_last_answer_of_each_counts_and_only_for_its_own_question() -> None:
    answers, question, other = Answers(), QuestionName("batch", 0), QuestionName("batch", 1)
    assert answers.choose("ada", question, 2)
    assert not answers.choose("ada", question, 2), "the same again is no news"
    assert answers.choose("ada", question, 1)
    assert answers.choose("bob", question, 1)
    assert answers.choose("bob", other, 0)
    assert not answers.choose("eve", question, -1)
    assert not answers.choose("eve", question, 12)
    assert answers.counts(question, 3) == (0, 2, 0)
    assert answers.counts(other, 3) == (1, 0, 0)
    assert answers.counts(QuestionName("growth", 0), 2) == (0, 0)


def test_answers_are_forgotten_by_question_when_there_are_too_many() -> None:
    answers = Answers()
    for seed in range(201):
        answers.choose("ada", QuestionName("batch", seed), 0)
    assert answers.counts(QuestionName("batch", 0), 1) == (0,)
    assert answers.counts(QuestionName("batch", 200), 1) == (1,)


@pytest.mark.parametrize(
    ("bound_to", "page_url", "own", "base", "sentence"),
    [
        ("127.0.0.1", "http://localhost:8501/room", "10.0.0.7", "http://localhost:8501", ONLY_HERE),
        ("localhost", "http://localhost:8501/room", "10.0.0.7", "http://localhost:8501", ONLY_HERE),
        ("0.0.0.0", "http://localhost:8501/room", "10.0.0.7", "http://10.0.0.7:8501", EXPOSED),
        ("0.0.0.0", "http://teacher.local:8501/room", "10.0.0.7", "http://teacher.local:8501", EXPOSED),
        ("0.0.0.0", "https://class.example/room", "10.0.0.7", "https://class.example", EXPOSED),
        (None, "http://127.0.0.1:8501/", "10.0.0.7", "http://10.0.0.7:8501", EXPOSED),
        ("0.0.0.0", "http://localhost:8501/", None, "http://localhost:8501", EXPOSED),
    ],
)
def test_the_page_says_who_can_reach_it_and_at_which_address(
    bound_to: str | None, page_url: str, own: str | None, base: str, sentence: str
) -> None:
    reach = reach_of(bound_to, page_url, own)
    assert (reach.base, reach.sentence) == (base, sentence)
    assert reach.link("7AF64YM6") == f"{base}/room?room=7AF64YM6"


@pytest.mark.parametrize(
    ("told", "settings"),
    [
        ({"block_size": 8, "num_blocks": 20, "preemption": "swap"}, RoomSettings(8, 20, "swap")),
        ({"block_size": 3, "num_blocks": 1e9, "preemption": "drop"}, RoomSettings()),
        ({"block_size": "8", "num_blocks": None, "preemption": ["swap"]}, RoomSettings()),
        ("nonsense", RoomSettings()),
    ],
)
def test_settings_that_come_back_from_a_tab_are_checked(told: object, settings: RoomSettings) -> None:
    assert settings_from(told) == settings


def test_lateness_is_never_negative_and_its_percentiles_are_values_that_occurred() -> None:
    lateness = Lateness()
    for late in (-0.002, 0.001, 0.002, 0.003):
        lateness.note(late, 0.010)
    lateness.note(0.040, 0.020)
    health = lateness.health
    assert (health.num_ticks, health.late_p50, health.late_p99, health.late_max) == (5, 2.0, 40.0, 40.0)
    assert (health.step_p50, health.step_p95) == (10.0, 20.0)
