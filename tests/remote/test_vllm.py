"""The connector against a real vLLM. Opt-in: VLLM_PYTHON is an interpreter that has it, VLLM_MODEL a model folder."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from engine.remote.prompt import PromptRequest, send_prompt
from engine.remote.recording import Recorder, history_of
from engine.remote.server import RemoteServer, ServerAddresses
from engine.remote.subscriber import Subscriber
from tests.helpers.kv_stream import wait_until
from tests.helpers.vllm_server import (
    BLOCK_SIZE,
    MODEL_NAME,
    NUM_BLOCKS,
    VARIABLES,
    WITHOUT_VLLM,
    VllmServer,
    vllm_server,
)

pytestmark = pytest.mark.skipif(not set(os.environ) >= VARIABLES, reason=WITHOUT_VLLM)
BEGINNING = "The librarian keeps every page of every book in small boxes, and a list says which box comes next. " * 3


@pytest.fixture(scope="module")
def vllm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[VllmServer]:
    with vllm_server(tmp_path_factory.mktemp("vllm") / "server.log") as server:
        yield server


@pytest.fixture
def watcher(vllm: VllmServer) -> Iterator[RemoteServer]:
    server = RemoteServer(ServerAddresses(vllm.events, vllm.replay, vllm.api))
    server.start()
    wait_until(lambda: server.is_connected and len(server.samples) > 0, "attaching")
    yield server
    server.stop()


def test_a_shared_prefix_is_found_and_counted_as_vllm_counts_it(watcher: RemoteServer) -> None:
    first = send_prompt(watcher, PromptRequest(f"{BEGINNING} Where is page one? " + "It was here. " * 12, 2))
    hits_before = watcher.samples[-1].prefix_hits
    second = send_prompt(watcher, PromptRequest(f"{BEGINNING} Who reads it? " + "We all do. " * 12, 2))
    assert first.is_exact and second.is_exact
    assert first.num_prompt_tokens is not None and len(first.stored) == first.num_prompt_tokens // BLOCK_SIZE
    assert second.stored and second.found and second.found < first.stored
    wait_until(lambda: (watcher.samples[-1].prefix_hits or 0) > (hits_before or 0), "counting the hits")
    assert watcher.samples[-1].prefix_hits == (hits_before or 0) + len(second.found) * BLOCK_SIZE


def test_vllms_version_and_metrics_are_read(watcher: RemoteServer) -> None:
    sample = watcher.samples[-1]
    assert (sample.server, sample.num_blocks, sample.block_size) == ("vLLM", NUM_BLOCKS, BLOCK_SIZE)
    assert watcher.facts.model == MODEL_NAME
    assert watcher.problems() == []


def test_its_tokens_are_written_as_text_by_itself_with_few_requests(watcher: RemoteServer) -> None:
    detokenizer = watcher.detokenizer
    assert detokenizer is not None
    wait_until(lambda: detokenizer.state == "answers", "learning how vLLM answers")
    prompt = f"{BEGINNING} Wörter, «quoted»; emoji 🙂 and\nlines. " * 2
    sent = send_prompt(watcher, PromptRequest(prompt, 2))
    assert sent.token_ids is not None and sent.num_prompt_tokens is not None
    ids = sent.token_ids[: sent.num_prompt_tokens]
    wanted = [ids, *((token,) for token in dict.fromkeys(ids))]
    for sequence in wanted:
        detokenizer.text(sequence)
    wait_until(lambda: detokenizer.num_waiting == 0, "getting the texts")
    pieces = [detokenizer.text((token,)) for token in ids]
    assert detokenizer.text(ids) == prompt
    assert "".join(piece or "" for piece in pieces).startswith(f"{BEGINNING} W")
    assert (detokenizer.state, None in pieces) == ("answers", False)
    assert detokenizer.num_requests < 12


def test_evictions_are_received_and_recorded(watcher: RemoteServer, vllm: VllmServer, tmp_path) -> None:
    file = tmp_path / "live.msgpack"
    with Recorder(file) as recorder:
        subscriber = Subscriber(recorder, vllm.events, vllm.replay)
        subscriber.start()
        for number in range(4):
            story = f"Story {number}. " + f"{number} robots counted {number} stones. " * 24
            send_prompt(watcher, PromptRequest(story, 2))
        wait_until(lambda: recorder.num_messages == watcher.last_step, "recording everything")
        subscriber.stop()
    view = watcher.at(watcher.last_step).prefix_cache
    assert view.ranks[0].num_removed > 0
    assert view.ranks[0].num_unknown_removed == 0 and view.partial_since is None
    assert view.num_copies < NUM_BLOCKS
    recorded = history_of(file.read_bytes())
    assert recorded.at(recorded.last_step).prefix_cache == view
