"""The subscriber against a real publisher on this machine: live, late, with gaps, over a restart."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator

import pytest
import zmq

import engine.remote.server as server_module
from engine.remote.addresses import events_address
from engine.remote.history import History
from engine.remote.publisher import Publisher, PublishError
from engine.remote.replay import replayed
from engine.remote.server import RemoteServer, ServerAddresses
from engine.remote.subscriber import Subscriber
from engine.trace.cache_events import MessagesMissed, ServerRestarted
from tests.helpers.app_server import free_port
from tests.helpers.kv_stream import one_block, wait_until
from views.remote import connections as remote_connections

ANY_PORT = "tcp://127.0.0.1:0"


@pytest.fixture
def keep() -> Iterator[Callable]:
    """Close publishers and subscribers when the test ends."""
    kept: list = []

    def remember(part):
        kept.append(part)
        return part

    yield remember
    for part in reversed(kept):
        (part.close if isinstance(part, Publisher) else part.stop)()


def num_connected(subscriber: Subscriber) -> int:
    return sum(endpoint.is_connected for endpoint in subscriber.endpoints)


def listening(publisher: Publisher, keep: Callable, *, replay: bool = True) -> tuple[History, Subscriber]:
    history = History()
    address = events_address(publisher.replay_endpoint) if replay and publisher.replay_endpoint else None
    subscriber = keep(Subscriber(history, events_address(publisher.endpoint), address))
    subscriber.start()
    wait_until(lambda: num_connected(subscriber) == 1, "a connection")
    return history, subscriber


def hashes(history: History) -> list:
    return list(history.at(history.last_step).prefix_cache.of(0).blocks)


def kinds(history: History, kind: type) -> list:
    return [e for step in range(1, history.last_step + 1) for e in history.events_of(step) if isinstance(e, kind)]


def publish_until_heard(publisher: Publisher, history: History) -> None:
    """A subscription needs a moment to reach the publisher: send until the first message is through."""

    def heard() -> bool:
        publisher.publish(one_block(publisher._next))
        return history.last_step > 0

    wait_until(heard, "the first message")


def test_earlier_messages_are_replayed_and_new_ones_appended(keep):
    publisher = keep(Publisher(ANY_PORT, ANY_PORT))
    for number in range(5):
        publisher.publish(one_block(number))
    history, _ = listening(publisher, keep)
    wait_until(lambda: hashes(history) == list(range(5)), "catching up")
    publish_until_heard(publisher, history)
    publisher.publish(one_block(100))
    wait_until(lambda: 100 in hashes(history), "the live message")
    assert not kinds(history, MessagesMissed)


class OlderPublisher(Publisher):
    """Answers without the topic, as vLLM did at first."""

    def replay_frames(self, _topic: bytes, number: bytes, payload: bytes) -> list[bytes]:
        return [number, payload]


def test_replays_of_an_older_server_are_read(keep):
    publisher = keep(OlderPublisher(ANY_PORT, ANY_PORT))
    for number in range(5):
        publisher.publish(one_block(number))
    history, _ = listening(publisher, keep)
    wait_until(lambda: hashes(history) == list(range(5)), "catching up")
    publish_until_heard(publisher, history)
    assert not kinds(history, MessagesMissed)


def test_without_a_replay_socket_the_view_is_partial(keep):
    publisher = keep(Publisher(ANY_PORT))
    publisher.publish(one_block(0))
    history, _ = listening(publisher, keep)
    publish_until_heard(publisher, history)
    missed = kinds(history, MessagesMissed)
    assert (missed[0].step, missed[0].first) == (1, 0)
    assert history.at(history.last_step).prefix_cache.partial_since == 1


def test_a_restarted_server_is_reconnected_and_starts_over(keep):
    publisher = Publisher(ANY_PORT, ANY_PORT)
    endpoint, replay = publisher.endpoint, publisher.replay_endpoint
    for number in range(3):
        publisher.publish(one_block(number))
    history, subscriber = listening(publisher, keep)
    wait_until(lambda: hashes(history) == [0, 1, 2], "catching up")
    publisher.close()
    wait_until(lambda: num_connected(subscriber) == 0, "losing the connection")
    second = keep(Publisher(endpoint, replay))
    second.publish(one_block(50))
    wait_until(lambda: hashes(history) == [50], "starting over")
    assert len(kinds(history, ServerRestarted)) == 1
    assert history.at(history.last_step).prefix_cache.partial_since is None


def test_a_server_that_is_not_there_yet_is_waited_for(keep):
    first = Publisher(ANY_PORT, ANY_PORT)
    endpoint, replay = first.endpoint, first.replay_endpoint
    first.close()
    history = History()
    subscriber = keep(Subscriber(history, events_address(endpoint), events_address(replay)))  # type: ignore[arg-type]
    subscriber.start()
    assert num_connected(subscriber) == 0
    publisher = keep(Publisher(endpoint, replay))
    publisher.publish(one_block(7))
    wait_until(lambda: hashes(history) == [7], "connecting")


def test_data_parallel_ranks_are_followed_at_ports_one_after_another(keep):
    publishers = consecutive_publishers(keep)
    history = History()
    endpoint = events_address(publishers[0].endpoint)
    replay = events_address(publishers[0].replay_endpoint or "")
    for rank, publisher in enumerate(publishers):
        publisher.publish(one_block(10 + rank))
    subscriber = keep(Subscriber(history, endpoint, replay, num_ranks=2))
    subscriber.start()
    wait_until(lambda: num_connected(subscriber) == 2 and history.last_step == 2, "both ranks")
    ranks = history.at(2).prefix_cache.ranks
    assert {rank: list(view.blocks) for rank, view in ranks.items()} == {0: [10], 1: [11]}


def consecutive_publishers(keep: Callable) -> list[Publisher]:
    """Two, each with its sockets at the ports after the other's."""
    for _ in range(50):
        port = free_port() & ~1
        try:
            return [
                keep(Publisher(f"tcp://127.0.0.1:{port + rank}", f"tcp://127.0.0.1:{port + 2 + rank}"))
                for rank in range(2)
            ]
        except PublishError:
            continue
    raise AssertionError("no four free ports in a row")


def test_replies_of_another_shape_are_counted_and_skipped():
    context: zmq.Context = zmq.Context()
    router = context.socket(zmq.ROUTER)
    port = router.bind_to_random_port("tcp://127.0.0.1")
    unknown = []

    def answer() -> None:
        client = router.recv_multipart()[0]
        for frames in ([b"one"], [b"short", b"data"], [b"", b"", b"", bytes(8), b"x"], [bytes(7) + b"\x05", b"data"]):
            router.send_multipart([client, *frames])
        router.send_multipart([client, b"", b"\xff" * 8, b""])

    server = threading.Thread(target=answer)
    server.start()
    asked = replayed(context, events_address(f"tcp://127.0.0.1:{port}"), lambda: unknown.append(1), 0)
    assert (list(asked), len(unknown)) == ([(5, b"data")], 3)
    server.join()
    router.close()
    context.term()


def test_frames_of_another_shape_are_skipped(keep):
    publisher = keep(Publisher(ANY_PORT, ANY_PORT))
    history, subscriber = listening(publisher, keep)
    publish_until_heard(publisher, history)
    for frames in ([b"one"], [b"a", b"short", b"b"], [b"a", bytes(8), b"b", b"c"], [b"t", b"\xff" * 8, b""]):
        publisher._events.send_multipart(frames)
    publisher.publish(b"\xc1 no msgpack")
    publisher.publish(one_block(1000))
    wait_until(lambda: 1000 in hashes(history), "the message after them")
    assert (history.num_skipped, subscriber.num_unknown) == (1, 4)
    assert num_connected(subscriber) == 1


def test_messages_of_an_unknown_shape_are_counted_and_reported(keep):
    publisher = keep(Publisher(ANY_PORT))
    remote = keep(RemoteServer(ServerAddresses(events_address(publisher.endpoint))))
    remote.start()
    wait_until(lambda: remote.is_connected, "a connection")
    publish_until_heard(publisher, remote.history)
    payload, number = one_block(1000), (7).to_bytes(4, "big")
    publisher._events.send_multipart([payload])
    wait_until(lambda: remote.problems() == ["1 message of an unknown shape was left out."], "the first one's sentence")
    for _ in range(3):
        for frames in ([payload], [b"topic", payload], [b"topic", number, payload], [b"", bytes(8), payload, b""]):
            publisher._events.send_multipart(frames)
    wait_until(lambda: remote.problems() == ["13 messages of an unknown shape were left out."], "the sentence")
    assert 1000 not in hashes(remote.history)


def test_a_rank_that_is_not_there_is_named_by_its_own_address(keep):
    first, second = consecutive_publishers(keep)
    address = events_address(first.endpoint)
    second.close()
    remote = keep(RemoteServer(ServerAddresses(address, num_ranks=2)))
    assert remote.problems() == [
        f"Nothing listens at {address} and {second.endpoint}. Start the server there, or correct the address; "
        "this page then connects on its own."
    ]
    remote.start()
    absent = f"Nothing listens at {second.endpoint}, the port of another rank. Is the number of ranks right?"
    wait_until(lambda: remote.problems() == [absent], "the first rank's connection")
    assert not remote.is_connected
    late = Publisher(second.endpoint)
    wait_until(lambda: remote.is_connected, "the second rank's connection")
    late.close()
    lost = f"The connection to {second.endpoint} is lost. It reconnects when the server is back."
    wait_until(lambda: remote.problems() == [lost], "the loss")


def test_many_disconnected_ranks_are_one_sentence():
    remote = RemoteServer(ServerAddresses(events_address("tcp://127.0.0.1:7000"), num_ranks=5))
    [problem] = remote.problems()
    where = "tcp://127.0.0.1:7000, tcp://127.0.0.1:7001, tcp://127.0.0.1:7002 and 2 more"
    assert problem.startswith(f"Nothing listens at {where}. ")


def test_stop_ends_the_thread_even_if_it_never_started(keep):
    publisher = keep(Publisher(ANY_PORT, ANY_PORT))
    _history, subscriber = listening(publisher, keep)
    subscriber.stop()
    assert not subscriber.is_alive()
    Subscriber(History(), events_address(publisher.endpoint)).stop()


def test_an_unused_connection_is_closed(keep, monkeypatch):
    monkeypatch.setattr(server_module, "SECONDS_UNTIL_IDLE", 1.0)
    monkeypatch.setattr(server_module, "SECONDS_BETWEEN_CHECKS", 0.05)
    publisher = keep(Publisher(ANY_PORT))
    remote = RemoteServer(ServerAddresses(events_address(publisher.endpoint)))
    remote.start()
    looked_until = time.monotonic() + 1.5
    while time.monotonic() < looked_until:
        remote.touch()
        assert not remote.is_stopped
        time.sleep(0.02)
    wait_until(lambda: remote.is_stopped, "letting go")


def test_one_connection_a_server_and_a_limit_on_all(keep, monkeypatch):
    monkeypatch.setattr(remote_connections, "MAX_CONNECTIONS", 2)
    publishers = [keep(Publisher(ANY_PORT)) for _ in range(3)]
    addresses = [ServerAddresses(events_address(publisher.endpoint)) for publisher in publishers]
    connections = remote_connections.RemoteConnections()
    first = connections.attach(addresses[0], by_presenter=False)
    assert connections.attach(addresses[0], by_presenter=False) is first
    assert connections.attached_by_presenter == set()
    connections.attach(addresses[1], by_presenter=True)
    assert connections.attached_by_presenter == {addresses[1].events}
    with pytest.raises(remote_connections.TooManyServersError, match=r"^This app is attached to 2 servers"):
        connections.attach(addresses[2], by_presenter=True)
    monkeypatch.setattr(remote_connections, "IDLE_SECONDS", 0.05)
    time.sleep(0.06)
    connections.attach(addresses[1], by_presenter=False)
    third = connections.attach(addresses[2], by_presenter=False)
    wait_until(lambda: first.is_stopped, "making room")
    assert not third.is_stopped
    connections.close_all()


def test_an_address_in_use_is_reported(keep):
    publisher = keep(Publisher(ANY_PORT))
    with pytest.raises(PublishError, match=r"^Events cannot be published at tcp://127\.0\.0\.1:\d+: Address"):
        Publisher(publisher.endpoint)
