"""Four memories, one stream of arrivals: who stops first, why, and where the slots went."""

from __future__ import annotations

import pytest

from course.race.experiment import num_reserved_alike, out_of_order, race
from engine.baselines.arrivals import ALPACA, draw_arrivals, parse_arrivals
from engine.trace.events import RegionReserved


def test_typed_arrivals_give_the_figures_worked_out_by_hand() -> None:
    """64 slots, a limit of 32: two Max reservations fill memory, while pages take all three requests."""
    lanes = {lane.name: lane for lane in race(parse_arrivals("1 5 9\n1 6 10\n2 8 8"), 64, 4, 32)}
    assert list(lanes) == ["Max", "Pow2", "Oracle", "Paged"]
    first = lanes["Max"].first_obstacle
    assert first is not None
    assert (first.step, first.request_id, first.kind) == (2, "r2", "waits")
    assert first.reason == "0 slots free, longest gap 0, need 32"
    assert lanes["Paged"].first_obstacle is None and lanes["Paged"].most_running == 3
    assert lanes["Max"].most_running == 2
    # While r2 waits, both reservations fill memory; at the start and at the end they do not.
    assert lanes["Max"].average_percent()["free"] == 0 < lanes["Max"].waste[0].free
    # After step 1 both prompts are written in two blocks each, and both will use the other slots.
    paged = lanes["Paged"].waste[1]
    assert (paged.token_states, paged.reservation, paged.internal_fragmentation, paged.free) == (11, 5, 0, 48)
    # Max holds 32 each; 14 and 16 of them will ever be used.
    contiguous = lanes["Max"].waste[1]
    assert (contiguous.token_states, contiguous.reservation, contiguous.internal_fragmentation) == (11, 19, 34)
    assert all(w.num_slots == 64 for lane in lanes.values() for w in lane.waste)


def test_every_layout_finishes_every_request_with_the_same_tokens() -> None:
    arrivals = draw_arrivals(ALPACA, 20, requests_per_step=0.5, max_model_len=512, seed=3)
    lanes = race(arrivals, 1024, 16, 512)
    for lane in lanes:
        state = lane.trace.at(lane.num_steps)
        assert {r.status for r in state.requests.values()} == {"finished"}
        assert {s.seq_id: s.num_tokens for s in state.sequences.values()} == {
            a.request_id: a.num_tokens for a in arrivals
        }
    shares = {lane.name: lane.average_percent() for lane in lanes}
    assert all(sum(share.values()) == pytest.approx(100) for share in shares.values())
    order = [shares[name]["token_states"] for name in ("Max", "Pow2", "Oracle", "Paged")]
    assert order == sorted(order) and len(set(order)) == 4
    assert {lane.name: lane.paper_percent["token_states"] for lane in lanes} == {
        "Max": 20.4, "Pow2": 26.8, "Oracle": 38.2, "Paged": 96.3,
    }  # fmt: skip
    steps = [lane.num_steps for lane in lanes]
    assert steps[3] < min(steps[:3])


@pytest.mark.parametrize("limit", [64, 128])
def test_pow2_never_reserves_more_than_max_and_the_order_is_that_of_the_paper(limit: int) -> None:
    arrivals = draw_arrivals(ALPACA.scaled(0.5), 40, requests_per_step=1.5, max_model_len=limit, seed=0)
    lanes = race(arrivals, 256, 4, limit)
    max_lane, pow2, _oracle, _paged = lanes
    sizes = {e.num_slots for e in pow2.trace if isinstance(e, RegionReserved)}
    assert max(sizes) == limit, "without the cap, a prompt and a reply of 40 each would reserve 128"
    assert pow2.num_steps < max_lane.num_steps
    assert out_of_order(lanes) == ()


def test_layouts_out_of_the_papers_order_are_named() -> None:
    """r0 and r1 reserve 5 + 16 and 6 + 16 slots by Pow2, so 32 with the buddy allocator, as Max; r2 reserves 16."""
    lanes = race(parse_arrivals("1 5 9\n1 6 10\n2 8 8"), 64, 4, 32)
    assert [(one.name, after.name) for one, after in out_of_order(lanes)] == [("Max", "Pow2"), ("Oracle", "Paged")]
    assert num_reserved_alike(lanes[0], lanes[1]) == 2


def test_every_layout_shows_the_positions_of_a_request() -> None:
    for lane in race(parse_arrivals("1 2 3"), 16, 4, 16):
        assert lane.trace.at(lane.num_steps).sequences["r0"].pieces == ["0", "1", "2", "3", "4"]


def test_a_request_too_large_is_refused_with_the_reason_and_others_run() -> None:
    lanes = race(parse_arrivals("1 70 20\n1 5 5"), 64, 4, 128)
    for lane in lanes[1:]:
        obstacle = lane.first_obstacle
        assert obstacle is not None and (obstacle.request_id, obstacle.kind) == ("r0", "refused")
        assert lane.trace.at(lane.num_steps).requests["r1"].status == "finished"


def test_sizes_must_match() -> None:
    with pytest.raises(ValueError, match="multiple of the block size"):
        race(parse_arrivals("1 5 5"), 65, 4, 32)
    with pytest.raises(ValueError, match="needs requests"):
        race([], 64, 4, 32)
