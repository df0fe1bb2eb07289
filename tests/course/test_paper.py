"""The reproduction of the paper: exact numbers at sizes that can be counted by hand, and verdicts without tolerance."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import pytest

from course.paper.batched import Saturation, Throughput, results_of, run_saturated
from course.paper.block_sizes import (
    AttentionTimes,
    PreemptionTask,
    PreemptionTimes,
    SwapCosts,
    judge_figure_18a,
    judge_figure_19a,
    measure_figure_18b,
    measure_figure_19b,
)
from course.paper.capacity import measure_table_1, num_slots
from course.paper.prefixes import draw_conversation
from course.paper.record import NO_NUMBER, SURE, Measured, Quantity, Record, Setup, spread
from course.paper.records import RECORDS
from course.paper.results import Results
from course.paper.serving import MEMORIES, ContiguousMemory, PagedMemory, Step, normalized_latency, saturate
from course.paper.sharing import SavedBlocks
from course.paper.step_times import DecodeTime, StepTimes
from course.paper.waste import mean_waste, measure_figure_3
from course.paper.workloads import FAMILIES, Request, TraceTask, draw_requests
from engine.baselines.arrivals import ALPACA
from engine.baselines.reservations import Oracle

TIMES = StepTimes(
    "none", (DecodeTime(1, 16, 0.010, 1016, 0.020), DecodeTime(3, 48, 0.030, 3048, 0.060)), ((10, 1.0), (20, 3.0))
)
SETUP = Setup(lambda function, tasks: [function(task) for task in tasks], (0,), 1, TIMES)


def test_table_1_is_what_the_models_sizes_give() -> None:
    assert [num_slots(model) for model in ("13B", "66B", "175B")] == [15_728, 9_557, 60_074]
    measured = measure_table_1(SETUP)
    assert measured.values["requests"] == [7.0]
    assert measured.values["left_over"] == [pytest.approx(100 * (15_728 - 7 * 2048) / 15_728)]


def test_figure_3_is_the_papers_own_count() -> None:
    kinds = ("token_states", "reservation", "internal_fragmentation")
    values = measure_figure_3(SETUP).values
    assert [values[f"A_{kind}"] for kind in kinds] == [[8.0], [2.0], [2038.0]]
    assert [values[f"B_{kind}"] for kind in kinds] == [[4.0], [1.0], [507.0]]


def equal_requests(count: int) -> list[Request]:
    """Prompts of 4 tokens, outputs of 4, one arrival a unit of time."""
    return [Request(number, float(number), 4, 4) for number in range(count)]


def test_memory_alone_decides_how_many_run() -> None:
    """8 slots each: 16 slots hold two regions; pages hold more, as the second block comes later."""
    clocks = {"one": lambda step: 1.0, "seqs": lambda step: float(step.num_seqs)}
    contiguous = saturate(ContiguousMemory(16, Oracle(8)), equal_requests(20), clocks, 16)
    assert contiguous.mean_running == 2.0
    assert contiguous.requests_per_second == {"one": 0.5, "seqs": 0.25}
    assert contiguous.prompt_tokens == 4.0
    paged = saturate(PagedMemory(16, 4), equal_requests(20), clocks, 16)
    assert 2.0 <= paged.mean_running <= 4.0


def test_a_step_counts_prompts_and_context_apart() -> None:
    memory = PagedMemory(64, 4)
    memory.add(Request(0, 0.0, 6, 3))
    assert memory.step() == Step(1, 1, 6, 0, ())
    memory.add(Request(1, 0.0, 1, 1))
    assert memory.step() == Step(2, 1, 1, 7, (1,))
    assert memory.step() == Step(1, 0, 0, 8, (0,))


def test_latency_is_waiting_and_running_over_the_outputs_length() -> None:
    """One region: a request takes 4 steps of 1 s. At 1 request a second request k waits for k others, 3 s each."""
    latency = normalized_latency(ContiguousMemory(8, Oracle(8)), equal_requests(5), 1.0, lambda step: 1.0, warm_up=8)
    assert latency == pytest.approx(sum(4 + 3 * number for number in range(1, 5)) / 4 / 4)


def test_a_step_is_timed_on_the_lines_between_what_was_measured() -> None:
    assert TIMES(Step(1, 0, 0, 516, ())) == pytest.approx(0.015)
    assert TIMES(Step(2, 0, 0, 32, ())) == pytest.approx(0.020)
    assert TIMES(Step(1, 1, 15, 0, ())) == pytest.approx(2.0)
    assert TIMES(Step(2, 1, 30, 16, ())) == pytest.approx(5.010)
    assert TIMES.alone(Step(9, 0, 0, 999, ())) == 0.010


@pytest.mark.parametrize("family", FAMILIES)
def test_lengths_have_the_published_means_and_fit_the_model(family: str) -> None:
    requests = draw_requests(ALPACA, family, 4000, 1)
    for lengths, mean in (
        ([r.num_prompt_tokens for r in requests], ALPACA.mean_input),
        ([r.num_output_tokens for r in requests], ALPACA.mean_output),
    ):
        assert sum(lengths) / len(lengths) == pytest.approx(mean, rel=0.06)
        assert min(lengths) >= 1
    assert requests == draw_requests(ALPACA, family, 4000, 1)
    assert max(r.num_prompt_tokens + r.num_output_tokens for r in requests) <= 2048


def test_shares_of_the_memory_add_up_and_pages_round_nothing() -> None:
    shares = {name: mean_waste(TraceTask(name, "Alpaca", "gamma", 0, 2048, 160)) for name in ("Oracle", "vLLM")}
    assert all(sum(each.values()) == pytest.approx(100) for each in shares.values())
    assert shares["vLLM"]["external_fragmentation"] == 0.0
    assert shares["Oracle"]["internal_fragmentation"] == 0.0


def test_samples_share_the_full_blocks_of_their_prompt() -> None:
    """Two samples behind a prompt of one block: 1 block instead of 2 after the first step, 3 instead of 4 then."""
    memory = PagedMemory(160, n=2)
    saved = SavedBlocks(memory.kv)
    memory.add(Request(0, 0.0, 16, 3))
    while memory.num_waiting or memory.num_running:
        memory.step()
        saved.look()
    assert saved.percent == pytest.approx(100 * 2 / 6)


def test_a_memory_that_swaps_moves_the_blocks_of_the_latest_arrival_out_and_back() -> None:
    """Four blocks of 4: in step 6 the first request needs a third one, and ends in step 8."""
    memory = PagedMemory(16, 4, swap=True)
    for number in range(2):
        memory.add(Request(number, 0.0, 4, 8))
    steps = [memory.step() for _step in range(9)]
    assert [step.swapped_out for step in steps] == [0, 0, 0, 0, 0, 2, 0, 0, 0]
    assert [step.swapped_in for step in steps] == [0, 0, 0, 0, 0, 0, 0, 0, 2]
    assert [step.finished for step in steps[6:]] == [(), (0,), ()]
    assert memory.num_waiting == 0


def test_a_chat_repeats_what_was_said_until_its_prompt_is_full() -> None:
    rounds = draw_conversation(Random(0), "gamma", 3, 10)
    assert [each.number for each in rounds] == list(range(10, 10 + len(rounds)))
    lengths = [each.num_prompt_tokens for each in rounds]
    assert lengths == sorted(lengths) and lengths[-1] <= 1024
    first, second = rounds[:2]
    assert second.prompt[: len(first.prompt)] == first.prompt


def test_a_chats_prefix_cache_keeps_what_was_written_in_full_blocks() -> None:
    """The last token of a reply is never written."""
    first, second = draw_conversation(Random(0), "gamma", 3, 0)[:2]
    memory = PagedMemory(4096, prefix_caching=True)
    memory.add(first)
    while memory.num_waiting or memory.num_running:
        memory.step()
    memory.add(second)
    kept = (first.num_prompt_tokens + first.num_output_tokens - 1) // 16 * 16
    assert memory.step().num_prompt_tokens == second.num_prompt_tokens - kept


def test_one_run_serves_both_figures_and_all_memories() -> None:
    setup = Setup(SETUP.run, (0,), 1, TIMES)
    small = Saturation("Oracle", "Alpaca", "gamma", 0, 1024, 60)
    result = run_saturated((small, TIMES))
    assert 4 < result.mean_running < 12 and result.rates["equal"] > result.rates["measured"]
    setup.known.update(
        ((run_saturated, Saturation(m, "Alpaca", f, 0, 15728, 202)), result) for m in MEMORIES for f in FAMILIES
    )
    assert {name: len(each) for name, each in results_of(setup, "Alpaca", "13B").items()} == dict.fromkeys(MEMORIES, 2)


def test_paged_attention_is_held_against_two_others() -> None:
    times = AttentionTimes([1.2e-5, 1.2e-5], [1.0e-5, 1.2e-5], [0.8e-5, 0.6e-5])
    measured = judge_figure_18a({(32, 64): times})
    assert measured.values == {"one_32_64": pytest.approx([20, 0]), "torch_32_64": pytest.approx([50, 100])}
    [curve] = measured.curves
    assert (curve.of, curve.rows[0]["context"], curve.rows[0]["paged, blocks of 16"]) == ("32", 64, pytest.approx(12))


def test_the_best_block_size_is_asked_of_every_trace_by_both_clocks() -> None:
    """With equal steps blocks of 1 would be best, but their step costs twice as much."""

    def run(_function: object, jobs: Sequence[tuple[Saturation, StepTimes]]) -> list[Throughput]:
        return [
            Throughput(1.0, {"equal": 4.0 - task.block_size / 128, "measured": float(task.block_size)}, 1.0)
            for task, _times in jobs
        ]

    cost = dict.fromkeys((2, 4, 8, 16, 32, 64, 128, 256), 1.0) | {1: 2.0}
    values = measure_figure_18b(Setup(run, (0, 1), 1, TIMES), cost).values
    assert values["equal_Alpaca_best"] == [2.0] * 4
    assert values["equal_ShareGPT_256"] == [pytest.approx(2.0 / 3.875)] * 4
    assert values["measured_ShareGPT_best"] == [256.0] * 4
    assert values["measured_Alpaca_256"] == [16.0] * 4


def test_recompute_is_held_against_swap_by_block_size() -> None:
    times = {
        1: PreemptionTimes([0.02, 0.04], [0.03, 0.03], [0.01, 0.01]),
        256: PreemptionTimes([0.03, 0.04], [0.01, 0.03], [0.0, 0.01]),
    }
    assert judge_figure_19a(times).values == {
        "constant": pytest.approx([1.5, 1.0]),
        "small": pytest.approx([4.0, 1.0]),
        "most": pytest.approx([3.0, 1.0]),
        "smallest": pytest.approx([0.5, 1.0]),
    }


def test_a_swap_costs_what_its_blocks_do() -> None:
    """499 tokens are 2 blocks of 256."""
    costs = SwapCosts.of(256, PreemptionTimes([1.0], [0.4], [0.2]))
    assert costs == SwapCosts(256, 0.1, 0.2)

    def run(_function: object, jobs: Sequence[tuple[PreemptionTask, StepTimes]]) -> list[float]:
        return [2.0 if task.swaps else 1.0 + task.seed for task, _times in jobs]

    assert measure_figure_19b(Setup(run, (0, 1), 1, TIMES), [costs]).values == {"256": [0.5, 1.0, 0.5, 1.0]}


def test_a_verdict_asks_every_run_and_has_no_tolerance() -> None:
    at_least = Quantity("k", "n", "2.2", "T", 2.2, None, 1.0)
    assert at_least.judge([2.2, 2.196]) == "holds"
    assert at_least.judge([2.2, 2.19]) == "partly"
    assert at_least.judge([1.5, 1.01]) == "partly"
    assert at_least.judge([1.5, 0.99]) == "does not hold"
    assert at_least.judge([]) == "not run"
    assert Quantity("k", "n", "8.9", "L", 8.9, 8.9, digits=1).judge([8.853]) == "holds"


def test_a_row_holds_when_all_of_it_does() -> None:
    one, other = Quantity("a", "n", "1", "T", 1.0, 1.0), Quantity("b", "n", "2", "T", 2.0, 2.0)
    record = Record("k", "p", "t", (one, other, Quantity("c", "n", "9", "V")), (), None)
    assert record.judge(Measured({"a": [1.0], "b": [2.0]})) == "holds"
    assert record.judge(Measured({"a": [1.0], "b": [3.0]})) == "partly"
    assert record.judge(Measured({"a": [0.0], "b": [3.0]})) == "does not hold"
    assert record.judge(None) == "not run"
    assert (spread([1.0, 1.004]), spread([1.0, 2.0], 1), spread([-0.4], 0), spread([])) == (
        "1.00",
        "1.0 – 2.0",
        "0",
        "-",
    )


def test_every_number_is_quoted_with_a_mark_and_stands_once() -> None:
    assert len({record.key for record in RECORDS}) == len(RECORDS)
    for record in RECORDS:
        assert record.setup and len({q.key for q in record.quantities}) == len(record.quantities)
        assert all(
            q.sure in SURE or (q.sure, q.printed, q.is_judged) == ("", NO_NUMBER, False) for q in record.quantities
        )
        assert record.measure or record.judge(None) == "not run"


def test_every_figure_of_the_issue_has_its_row() -> None:
    assert [record.key for record in RECORDS] == [
        "table1", "fig2", "fig3", "fig12a", "fig12b", "fig12c", "fig12d", "fig12e", "fig12f", "fig13a", "fig13b",
        "fig14", "fig15a", "fig15b", "sharegpt15a", "sharegpt15b", "fig16", "fig17", "fig18a", "fig18b", "fig19a",
        "fig19b",
    ]  # fmt: skip


def test_results_survive_their_file() -> None:
    results = Results({"date": "today"}, TIMES, {"table1": measure_table_1(SETUP)}, {"table1": 0.1})
    text = results.to_json()
    again = Results.from_json(text)
    assert again.to_json() == text
    assert '"verdict": "partly"' in text
