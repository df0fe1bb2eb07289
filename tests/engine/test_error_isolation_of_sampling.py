"""A fault while a token is chosen, shown or checked ends that request; the others say what they would have said."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from torch import Tensor

from engine import Engine, EngineConfig, SamplingParams
from engine.model.tokenizer import ByteTokenizer
from engine.sampler import SampledToken, Sampler, SampleRequest
from engine.trace.events import RequestFinished
from engine.trace.trace import Trace
from tests.helpers.hash_model import greedy_continuation, hash_engine

CONFIG = EngineConfig(block_size=4, num_blocks=40, max_num_seqs=8, max_num_batched_tokens=64)
PROMPTS = {"A": [5, 6, 7, 8, 9], "B": [1, 2, 3], "C": [5, 6, 7, 8, 9, 10]}
GREEDY = SamplingParams(temperature=0.0, max_tokens=6, ignore_eos=True)
TOKENS_OF_B = greedy_continuation(PROMPTS["B"], 6)
TOKEN = 2
"""Which of B's new tokens goes wrong. No other request is given it, so nobody else meets the fault."""
POISONED = TOKENS_OF_B[TOKEN]


class PoisonedSampler:
    """Raises when it is asked for token TOKEN of one sequence."""

    def __init__(self, sampler: Sampler, seq_id: str) -> None:
        self.sampler, self.seq_id = sampler, seq_id

    def sample(self, logits: Tensor, requests: Sequence[SampleRequest]) -> list[SampledToken]:
        if any(d.sequence.seq_id == self.seq_id and len(d.sequence.output_token_ids) == TOKEN for d in requests):
            raise RuntimeError("on purpose")
        return self.sampler.sample(logits, requests)


class CannotShow(ByteTokenizer):
    def display(self, token_id: int) -> str:
        if token_id == POISONED:
            raise UnicodeError("on purpose")
        return super().display(token_id)


class CannotStream(ByteTokenizer):
    def is_special(self, token_id: int) -> bool:
        if token_id == POISONED:
            raise LookupError("on purpose")
        return super().is_special(token_id)


class PoisonedEnds(tuple[int, ...]):
    def __contains__(self, token_id: object) -> bool:
        if token_id == POISONED:
            raise ValueError("on purpose")
        return super().__contains__(token_id)


class CannotTellTheEnd(ByteTokenizer):
    eos_token_ids = PoisonedEnds()  # type: ignore[assignment]


class CannotCountEnds(tuple[int, ...]):
    def __len__(self) -> int:
        raise ArithmeticError("on purpose")


class CannotSearch(ByteTokenizer):
    eos_token_ids = CannotCountEnds()  # type: ignore[assignment]


def engine_choosing_badly(seq_id: str, config: EngineConfig = CONFIG) -> Engine:
    components = hash_engine(config).components
    return Engine(config, replace(components, sampler=PoisonedSampler(components.sampler, seq_id)))


def engine_reading_badly(tokenizer: ByteTokenizer) -> Engine:
    return Engine(CONFIG, replace(hash_engine(CONFIG).components, tokenizer=tokenizer))


def run_checked(engine: Engine) -> None:
    while engine.has_unfinished_requests():
        engine.step()
        engine.check_invariants()


def add_all(engine: Engine, params: SamplingParams) -> None:
    for name, prompt in PROMPTS.items():
        engine.add_request(prompt, params, name)


def assert_only_b_failed(engine: Engine, sentence: str, num_tokens: int) -> None:
    failed = engine.output("B")
    assert (failed.finished, failed.error) == (True, sentence)
    assert failed.outputs[0].finish_reason == "error"
    assert list(failed.outputs[0].token_ids) == TOKENS_OF_B[:num_tokens]
    for name in ("A", "C"):
        assert engine.output(name).error is None
        assert list(engine.output(name).outputs[0].token_ids) == greedy_continuation(PROMPTS[name], 6)
    assert all(block.ref_cnt == 0 for block in engine.snapshot().blocks)
    assert finish_of(engine, "B") == RequestFinished(TOKEN + 1, "B", "error", sentence)
    assert engine.snapshot().requests["B"].reason == sentence


def finish_of(engine: Engine, name: str) -> RequestFinished:
    return finish_in(engine.trace, name)


def finish_in(trace: Trace, name: str) -> RequestFinished:
    (event,) = [e for e in trace if isinstance(e, RequestFinished) and e.request_id == name]
    return event


def test_only_b_samples_the_failing_token() -> None:
    others = [token for name in "AC" for token in (*PROMPTS[name], *greedy_continuation(PROMPTS[name], 6))]
    assert POISONED not in others and TOKENS_OF_B.count(POISONED) == 1


def test_a_sampler_that_fails_on_one_request_ends_that_one() -> None:
    engine = engine_choosing_badly("B")
    add_all(engine, GREEDY)
    run_checked(engine)
    assert_only_b_failed(engine, "The sampler failed on this request (RuntimeError), so it has ended.", TOKEN)


@pytest.mark.parametrize(
    ("tokenizer", "params", "sentence", "num_tokens"),
    [
        (CannotShow(), GREEDY, "The detokenizer failed on this request (UnicodeError), so it has ended.", TOKEN),
        (CannotStream(), GREEDY, "The detokenizer failed on this request (LookupError), so it has ended.", TOKEN + 1),
        (
            CannotTellTheEnd(),
            replace(GREEDY, ignore_eos=False),
            "The stop check failed on this request (ValueError), so it has ended.",
            TOKEN + 1,
        ),
    ],
    ids=["a token that cannot be shown", "a text that cannot go on", "an end that cannot be told"],
)
def test_a_token_that_cannot_be_decoded_ends_its_request(
    tokenizer: ByteTokenizer, params: SamplingParams, sentence: str, num_tokens: int
) -> None:
    engine = engine_reading_badly(tokenizer)
    add_all(engine, params)
    run_checked(engine)
    assert_only_b_failed(engine, sentence, num_tokens)


def test_sampled_tokens_of_other_requests_do_not_change() -> None:
    random = SamplingParams(temperature=1.0, top_p=0.9, max_tokens=8, ignore_eos=True, seed=11)
    with_fault, without = engine_choosing_badly("B"), hash_engine(CONFIG)
    for engine in (with_fault, without):
        add_all(engine, random)
        run_checked(engine)
    for name in ("A", "C"):
        assert with_fault.output(name) == without.output(name)
    assert len(with_fault.output("B").outputs[0].token_ids) == TOKEN


def test_one_bad_sample_ends_all_samples_of_its_request() -> None:
    engine = engine_choosing_badly("B#1")
    engine.add_request(PROMPTS["B"], replace(GREEDY, n=3), "B")
    engine.add_request(PROMPTS["A"], GREEDY, "A")
    run_checked(engine)
    samples = engine.output("B").outputs
    assert [len(sample.token_ids) for sample in samples] == [TOKEN] * 3
    assert {sample.finish_reason for sample in samples} == {"error"}
    assert list(engine.output("A").outputs[0].token_ids) == greedy_continuation(PROMPTS["A"], 6)
    assert all(block.ref_cnt == 0 for block in engine.snapshot().blocks)


def test_a_failing_beam_search_ends_and_other_requests_continue() -> None:
    engine = engine_reading_badly(CannotSearch())
    engine.add_request(PROMPTS["B"], replace(GREEDY, beam_width=3, ignore_eos=False), "B")
    engine.add_request(PROMPTS["A"], GREEDY, "A")
    run_checked(engine)
    sentence = "Beam search failed on this request (ArithmeticError), so it has ended."
    assert engine.output("B").error == sentence
    assert finish_of(engine, "B") == RequestFinished(1, "B", "error", sentence)
    assert list(engine.output("A").outputs[0].token_ids) == greedy_continuation(PROMPTS["A"], 6)
    assert all(block.ref_cnt == 0 for block in engine.snapshot().blocks)


def test_a_beam_that_cannot_be_decoded_frees_the_blocks_of_its_forks() -> None:
    healthy = hash_engine(CONFIG)
    healthy.add_request(PROMPTS["B"], replace(GREEDY, beam_width=4), "B")
    for _ in range(3):
        healthy.step()
    token_ids = healthy.output("B").outputs[-1].token_ids
    assert len(token_ids) == 3

    class CannotShowABeam(ByteTokenizer):
        def display(self, token_id: int) -> str:
            if token_id == token_ids[-1]:
                raise UnicodeError("on purpose")
            return super().display(token_id)

    engine = engine_reading_badly(CannotShowABeam())
    engine.add_request(PROMPTS["B"], replace(GREEDY, beam_width=4), "B")
    run_checked(engine)
    assert engine.output("B").error == "The detokenizer failed on this request (UnicodeError), so it has ended."
    assert finish_of(engine, "B").step <= 3
    assert all(block.ref_cnt == 0 for block in engine.snapshot().blocks)


def test_an_error_in_the_block_pool_stops_the_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = hash_engine(CONFIG)
    engine.add_request(PROMPTS["B"], replace(GREEDY, n=2), "B")
    monkeypatch.setattr(engine.kv, "fork", lambda parent, child: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        engine.step()


def test_the_trace_records_the_error_and_round_trips() -> None:
    engine = engine_choosing_badly("B")
    add_all(engine, GREEDY)
    run_checked(engine)
    event = finish_in(Trace.from_json(engine.trace.to_json()), "B")
    assert event == finish_of(engine, "B")
    assert event.describe() == (
        "Request B is done (error). The sampler failed on this request (RuntimeError), so it has ended."
    )
