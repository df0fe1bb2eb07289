"""Four memories, one stream of arrivals: who stops first, why, and where the slots went."""

from __future__ import annotations

import pytest

from engine.arrivals import ALPACA, draw_arrivals, parse_arrivals
from engine.lab.race import race


def test_typed_arrivals_by_hand() -> None:
    """64 slots, a limit of 32: two Max reservations fill memory, while pages take all three requests."""
    lanes = {lane.name: lane for lane in race(parse_arrivals("1 5 9\n1 6 10\n2 8 8"), 64, 4, 32)}
    assert list(lanes) == ["Max", "Pow2", "Oracle", "Paged"]
    first = lanes["Max"].first_obstacle
    assert first is not None
    assert (first.step, first.request_id, first.kind) == (2, "r2", "waits")
    assert first.reason == "0 slots free, longest run 0, need 32"
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


def test_every_lane_serves_everybody_to_the_same_end() -> None:
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
