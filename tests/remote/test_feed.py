"""The numbers of messages: gaps are filled or told, repeats are dropped, restarts are noticed."""

from __future__ import annotations

import pytest

from engine.remote.feed import Feed
from engine.remote.replay import read_replayed
from tests.helpers.kv_stream import one_block


class Log:
    """A sink that remembers in one list what it was given."""

    def __init__(self) -> None:
        self.said: list = []

    def add_message(self, sequence, payload, _rank=None, /) -> None:
        self.said.append(sequence)

    def add_gap(self, first, last, _rank=None, /) -> None:
        self.said.append(("gap", first, last))

    def add_restart(self, _rank=None, /) -> None:
        self.said.append("restart")


def server(*numbers: int, shift: int = 0):
    """A replay socket that keeps these messages. A server with another `shift` sends other contents."""
    return lambda first: [(n, one_block(n + shift)) for n in numbers if n >= first]


def fed(numbers, replay=lambda _first: [], shift: int = 0) -> list:
    log = Log()
    feed = Feed(log, replay)
    for number in numbers:
        feed.receive(number, one_block(number + shift))
    return log.said


def test_messages_in_order_are_taken_as_they_come():
    assert fed([0, 1, 2]) == [0, 1, 2]


def test_a_gap_without_a_replay_socket_is_reported():
    assert fed([0, 1, 5, 6]) == [0, 1, ("gap", 2, 4), 5, 6]


def test_subscribing_late_is_a_gap_at_the_start():
    assert fed([7, 8]) == [("gap", 0, 6), 7, 8]


def test_a_gap_is_filled_from_the_replay_socket_and_not_beyond():
    assert fed([0, 1, 5, 6], server(*range(9))) == [0, 1, 2, 3, 4, 5, 6]


def test_messages_dropped_by_the_replay_socket_are_reported():
    assert fed([0, 6], server(3, 4, 6)) == [0, ("gap", 1, 2), 3, 4, ("gap", 5, 5), 6]


def test_a_message_that_comes_twice_is_taken_once():
    assert fed([0, 1, 2, 1, 2, 3]) == [0, 1, 2, 3]


def test_a_lower_sequence_number_with_other_content_is_a_restart():
    log = Log()
    feed = Feed(log)
    for number in (0, 1, 2):
        feed.receive(number, one_block(number))
    feed.receive(0, one_block(50))
    feed.receive(1, one_block(51))
    assert log.said == [0, 1, 2, "restart", 0, 1]


def test_after_a_restart_missed_messages_are_reported():
    log = Log()
    feed = Feed(log)
    feed.receive(0, one_block(0))
    feed.receive(1, one_block(1))
    feed.receive(1, one_block(51))
    assert log.said == [0, 1, "restart", ("gap", 0, 0), 1]


def test_catching_up_takes_everything_and_repeats_are_ignored():
    log = Log()
    feed = Feed(log, server(0, 1, 2))
    feed.catch_up()
    for number in (1, 2, 3):
        feed.receive(number, one_block(number))
    assert log.said == [0, 1, 2, 3]


def test_catching_up_with_a_trimmed_server_is_partial_from_the_start():
    log = Log()
    Feed(log, server(4, 5)).catch_up()
    assert log.said == [("gap", 0, 3), 4, 5]


def test_after_a_lost_connection_the_same_server_goes_on():
    log = Log()
    numbers = [0, 1]
    feed = Feed(log, lambda first: server(*numbers)(first))
    feed.catch_up()
    numbers += [2, 3]
    feed.catch_up()
    assert log.said == [0, 1, 2, 3]


@pytest.mark.parametrize("kept", [(0,), (0, 1), (0, 1, 2, 3, 4)])
def test_after_a_lost_connection_a_new_server_is_noticed_at_once(kept):
    log = Log()
    shift = 0
    feed = Feed(log, lambda first: server(*(range(3) if not shift else kept), shift=shift)(first))
    feed.catch_up()
    shift = 100
    feed.catch_up()
    assert log.said == [0, 1, 2, "restart", *kept]


def test_after_a_lost_connection_a_server_without_messages_changes_nothing():
    log = Log()
    feed = Feed(log)
    feed.receive(0, one_block(0))
    feed.catch_up()
    feed.receive(1, one_block(1))
    assert log.said == [0, 1]


def test_an_invalid_sequence_number_is_dropped():
    assert fed([0, 2**64 - 1, 1]) == [0, 1]


@pytest.mark.parametrize(
    ("frames", "answer"),
    [
        ([bytes(7) + b"\x05", b"data"], (5, b"data")),
        ([b"", bytes(7) + b"\x05", b"data"], (5, b"data")),
        ([b"", b"kv", bytes(7) + b"\x05", b"data"], (5, b"data")),
        ([b"", b"\xff" * 8, b""], None),
        ([b"", b"", b"\xff" * 8, b""], None),
        ([b"\xff" * 8, b""], None),
        ([b"data"], None),
        ([b"", b"short", b"data"], None),
        ([b"", b"", b"", bytes(8), b"data"], None),
        ([], None),
    ],
)
def test_answers_with_and_without_topic_and_empty_frame(frames, answer):
    assert read_replayed(frames) == answer
