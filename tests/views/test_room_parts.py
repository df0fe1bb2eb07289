"""The parts of a room without an engine: codes, limits, names, places, answers, exposure."""

from __future__ import annotations

import pytest

from views.room import codes
from views.room.answers import Answers, QuestionName
from views.room.member import is_member_id, name_from
from views.room.network import EXPOSED, ONLY_HERE, REACHED, network_exposure
from views.room.place import Place, place_from
from views.room.quota import Quota, QuotaUsage, RefusedError
from views.room.settings import RoomSettings, settings_from
from views.room.tick_latency import TickLatency

PRIVATE_AND_OTHERS = "prompt=a+b&engine=key&run=xyz&room=R&follow=f&n="


def test_the_code_follows_from_the_token_and_is_easy_to_read_out() -> None:
    assert codes.code_of("a token") == codes.code_of("a token") == "7AF64YM6"
    assert codes.code_of("a tokem") != codes.code_of("a token")
    assert codes.shown("7AF64YM6") == "7AF6-4YM6"


@pytest.mark.parametrize("typed", ["7af6-4ym6", " 7AF6 4YM6 ", "7AF64YM6", "7 a f 6 4 y m 6"])
def test_a_code_may_be_typed_in_many_ways(typed: str) -> None:
    assert codes.code_from(typed) == "7AF64YM6"


def test_lookalike_letters_are_read_as_digits_and_longer_codes_are_wrong() -> None:
    assert codes.code_from("oIl0") == "0110"
    assert codes.code_from("7AF64YM6A") == "7AF64YM6A"


def test_tokens_and_member_ids_are_long_and_unique() -> None:
    assert len({codes.new_token() for _ in range(100)}) == 100
    assert all(is_member_id(codes.new_member_id()) for _ in range(100))
    assert not is_member_id("short")
    assert not is_member_id("x" * 22 + "<")


@pytest.mark.parametrize(
    ("prompt", "max_tokens", "sentence"),
    [
        ("  \n", 4, "The prompt is empty. Type a few words first."),
        (
            "x" * 301,
            4,
            "Your prompt has 301 characters; the limit is 300. Shorten it by 1 character and send it again.",
        ),
        ("x", 49, "A reply has 1 to 48 new tokens here; you asked for 49."),
        ("x", 0, "A reply has 1 to 48 new tokens here; you asked for 0."),
    ],
)
def test_a_prompt_of_a_wrong_length_is_refused(prompt: str, max_tokens: int, sentence: str) -> None:
    with pytest.raises(RefusedError) as refusal:
        Quota().check_length(prompt, max_tokens)
    assert str(refusal.value) == sentence


@pytest.mark.parametrize(
    ("usage", "sentence"),
    [
        (QuotaUsage(3, 40, 2), "2 of your prompts are in progress, the most allowed at once. Wait for one to finish."),
        (QuotaUsage(20, 40, 0), "You have sent 20 prompts, the most allowed until the presenter resets."),
        (QuotaUsage(9, 595, 0), "Each person may have 600 new tokens and you have 5 left: ask for 5 or fewer."),
        (
            QuotaUsage(9, 600, 0),
            "Each person may have 600 new tokens and you have 0 left: wait until the presenter resets.",
        ),
    ],
)
def test_an_exhausted_quota_is_one_sentence(usage: QuotaUsage, sentence: str) -> None:
    with pytest.raises(RefusedError) as refusal:
        Quota().check_usage(usage, 6)
    assert str(refusal.value) == sentence


def test_the_last_token_of_a_quota_can_be_used() -> None:
    Quota().check_usage(QuotaUsage(19, 594, 1), 6)


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
def test_a_place_is_a_page_of_the_app_without_private_values(told: object, place: Place | None) -> None:
    assert place_from(told) == place


def test_the_last_answer_of_each_member_counts_for_its_question() -> None:
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


def test_answers_are_dropped_by_question_beyond_the_limit() -> None:
    answers = Answers()
    for seed in range(201):
        answers.choose("ada", QuestionName("batch", seed), 0)
    assert answers.counts(QuestionName("batch", 0), 1) == (0,)
    assert answers.counts(QuestionName("batch", 200), 1) == (1,)


THROUGH_CLASS = REACHED.format(host="class.example")


@pytest.mark.parametrize(
    ("bound_to", "page_url", "own", "base", "sentence"),
    [
        ("127.0.0.1", "http://localhost:8501/room", "10.0.0.7", "http://localhost:8501", ONLY_HERE),
        ("localhost", "http://localhost:8501/room", "10.0.0.7", "http://localhost:8501", ONLY_HERE),
        ("0.0.0.0", "http://localhost:8501/room", "10.0.0.7", "http://10.0.0.7:8501", EXPOSED),
        ("0.0.0.0", "http://teacher.local:8501/room", "10.0.0.7", "http://teacher.local:8501", EXPOSED),
        ("0.0.0.0", "https://class.example/room", "10.0.0.7", "https://class.example", THROUGH_CLASS),
        ("127.0.0.1", "https://class.example/kv/room", "10.0.0.7", "https://class.example/kv", THROUGH_CLASS),
        ("127.0.0.1", "https://class.example/kv", None, "https://class.example/kv", THROUGH_CLASS),
        ("127.0.0.1", "https://class.example/a/kv/", None, "https://class.example/a/kv", THROUGH_CLASS),
        ("127.0.0.1", "http://127.0.0.1:8501/kv/live_engine", None, "http://127.0.0.1:8501/kv", ONLY_HERE),
        ("0.0.0.0", "http://localhost:8501/kv/room", "10.0.0.7", "http://10.0.0.7:8501/kv", EXPOSED),
        (None, "http://127.0.0.1:8501/", "10.0.0.7", "http://10.0.0.7:8501", EXPOSED),
        ("0.0.0.0", "http://localhost:8501/", None, "http://localhost:8501", EXPOSED),
    ],
)
def test_the_page_shows_its_network_exposure_and_address(
    bound_to: str | None, page_url: str, own: str | None, base: str, sentence: str
) -> None:
    exposure = network_exposure(bound_to, page_url, own)
    assert (exposure.base, exposure.sentence) == (base, sentence)
    assert exposure.link("7AF64YM6") == f"{base}/room?room=7AF64YM6"


@pytest.mark.parametrize(
    ("told", "settings"),
    [
        ({"block_size": 8, "num_blocks": 20, "preemption": "swap"}, RoomSettings(8, 20, "swap")),
        ({"block_size": 3, "num_blocks": 1e9, "preemption": "drop"}, RoomSettings()),
        ({"block_size": "8", "num_blocks": None, "preemption": ["swap"]}, RoomSettings()),
        ("nonsense", RoomSettings()),
    ],
)
def test_settings_reported_by_a_tab_are_validated(told: object, settings: RoomSettings) -> None:
    assert settings_from(told) == settings


def test_tick_latency_is_never_negative_and_its_percentiles_are_interpolated() -> None:
    tick_latency = TickLatency()
    for late in (-0.002, 0.001, 0.002, 0.003):
        tick_latency.record(late, 0.010)
    tick_latency.record(0.040, 0.020)
    health = tick_latency.health
    assert (health.num_ticks, health.late_max) == (5, 40.0)
    assert (health.late_p99, health.step_p50, health.step_p95) == pytest.approx((38.52, 10.0, 18.0))


def test_a_quota_of_one_is_worded_in_the_singular() -> None:
    with pytest.raises(RefusedError, match=r"^You have sent 1 prompt, the most"):
        Quota(prompts=1).check_usage(QuotaUsage(1, 0, 0), 6)
    with pytest.raises(RefusedError, match=r"^1 of your prompts is in progress"):
        Quota(at_once=1).check_usage(QuotaUsage(0, 0, 1), 6)
