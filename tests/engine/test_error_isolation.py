"""One request for which something raises ends with a sentence; the others say what they would have said without it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from torch import Tensor

from engine import Engine, EngineConfig, SamplingParams
from engine.components import Runner
from engine.scheduler import ScheduledSequence
from tests.helpers.hash_model import greedy_continuation, hash_engine
from views.live.request_list import request_list
from views.server.engine_session import EngineSession

CONFIG = EngineConfig(block_size=4, num_blocks=40, max_num_seqs=8, max_num_batched_tokens=64)
PROMPTS = {"A": [5, 6, 7, 8, 9], "B": [1, 2, 3], "C": [5, 6, 7, 8, 9, 10]}
GREEDY = SamplingParams(temperature=0.0, max_tokens=6, ignore_eos=True)


class Poisoned:
    """A runner that raises for whoever has computed `after` tokens of the request named."""

    def __init__(self, runner: Runner, request_id: str, after: int) -> None:
        self.runner, self.request_id, self.after = runner, request_id, after

    def run(self, items: Sequence[ScheduledSequence]) -> Tensor:
        if any(item.group.request_id == self.request_id and item.start >= self.after for item in items):
            raise RuntimeError("on purpose")
        return self.runner.run(items)


def poisoned_engine(request_id: str, after: int) -> Engine:
    components = hash_engine(CONFIG).components
    return Engine(CONFIG, replace(components, runner=Poisoned(components.runner, request_id, after)))


@pytest.mark.parametrize("after", [0, 3, 4, 6])
def test_the_failing_request_ends_with_an_error_and_the_others_continue(after: int) -> None:
    engine = poisoned_engine("B", after)
    for name, prompt in PROMPTS.items():
        engine.add_request(prompt, GREEDY, name)
    while engine.has_unfinished_requests():
        engine.step()
        engine.check_invariants()
    failed = engine.output("B")
    assert failed.error == "The model failed on this request (RuntimeError), so it has ended."
    assert failed.finished and failed.outputs[0].finish_reason == "error"
    assert len(failed.outputs[0].token_ids) == (0 if after == 0 else after - len(PROMPTS["B"]) + 1)
    for name in ("A", "C"):
        assert engine.output(name).error is None
        assert list(engine.output(name).outputs[0].token_ids) == greedy_continuation(PROMPTS[name], 6)
    state = engine.snapshot()
    assert all(block.ref_cnt == 0 for block in state.blocks)
    assert state.requests["B"].reason == failed.error


def test_all_samples_of_the_request_end_together() -> None:
    engine = poisoned_engine("A", 6)
    engine.add_request(PROMPTS["A"], replace(GREEDY, n=3), "A")
    engine.add_request(PROMPTS["B"], GREEDY, "B")
    while engine.has_unfinished_requests():
        engine.step()
        engine.check_invariants()
    assert {sample.finish_reason for sample in engine.output("A").outputs} == {"error"}
    assert list(engine.output("B").outputs[0].token_ids) == greedy_continuation(PROMPTS["B"], 6)


def test_a_model_that_always_fails_ends_every_request() -> None:
    components = hash_engine(CONFIG).components

    class Broken:
        def run(self, items: Sequence[ScheduledSequence]) -> Tensor:
            raise MemoryError("no room")

    engine = Engine(CONFIG, replace(components, runner=Broken()))
    outputs = engine.generate([PROMPTS["A"], PROMPTS["B"]], GREEDY)
    assert [output.error for output in outputs] == [
        "The model failed on this request (MemoryError), so it has ended."
    ] * 2
    engine.check_invariants()


def test_the_page_names_the_failed_request_and_the_run_continues() -> None:
    session = EngineSession(poisoned_engine("B", 3))  # its vocabulary: the first 64 bytes
    for _ in range(2):
        session.add('!"#', GREEDY, as_chat=False)
    while session.moment.has_unfinished:
        assert session.step(session.moment.step)
    page = request_list(session.moment)
    assert (
        "finished: The model failed on this request (RuntimeError), so it has ended. The others go on; "
        "the server&#x27;s log has the details."
    ) in page
    assert page.count('data-status="finished"') == 2
    assert session.moment.problem == ""
    assert session.moment.state.sequences["A"].finish_reason == "length"
