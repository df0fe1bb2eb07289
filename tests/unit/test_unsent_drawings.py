"""A fragment that runs again takes nothing back that the browser needs first."""

from __future__ import annotations

import pytest
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.runtime.forward_msg_queue import ForwardMsgQueue

from views.streamlit_private import keep_unsent_drawings_of_fragments


def drawn(index: int, fragment_id: str = "") -> ForwardMsg:
    message = ForwardMsg()
    message.metadata.delta_path.extend([0, index])
    message.delta.add_block.allow_empty = True
    message.delta.fragment_id = fragment_id
    return message


def waiting(queue: ForwardMsgQueue) -> list[int]:
    return [message.metadata.delta_path[1] for message in queue.flush()]


@pytest.fixture
def queue(monkeypatch: pytest.MonkeyPatch) -> ForwardMsgQueue:
    monkeypatch.setattr(ForwardMsgQueue, "clear", ForwardMsgQueue.clear)  # put back after the test
    keep_unsent_drawings_of_fragments()
    queue = ForwardMsgQueue()
    for message in (drawn(4), drawn(5, "fragment"), drawn(6)):
        queue.enqueue(message)
    return queue


def test_what_a_fragment_drew_is_sent_before_it_draws_again(queue: ForwardMsgQueue) -> None:
    queue.clear(retain_lifecycle_msgs=True, fragment_ids_this_run=["fragment"])
    queue.enqueue(drawn(5, "fragment"))
    assert waiting(queue) == [4, 5, 6, 5]


def test_a_new_run_of_the_whole_page_drops_the_old_one(queue: ForwardMsgQueue) -> None:
    queue.clear(retain_lifecycle_msgs=True)
    assert waiting(queue) == []
