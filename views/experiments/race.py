"""Experiment "Race for memory": whose arrivals, in how much memory; the lanes as words, tables and frames."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pandas as pd

from engine.arrivals import ALPACA, SHAREGPT, Arrival, draw_arrivals, parse_arrivals
from engine.events import ended
from engine.waste import WasteKind
from views.frames import Payload, frames_payload
from views.lesson_picture import renamed, words_of_frame
from views.told import Facts, Figure, tell
from views.url_values import ChoiceRule, NumberRule, TextRule

if TYPE_CHECKING:
    from engine.lab.race import Lane

KEY, STEP = "race", "step"
TYPED = "typed in"
WORKLOADS = {
    "like Alpaca, a quarter as long": ALPACA.scaled(0.25),
    "like Alpaca, half as long": ALPACA.scaled(0.5),
    "like ShareGPT, an eighth as long": SHAREGPT.scaled(0.125),
}
WORKLOAD = ChoiceRule("workload", "Arrivals", (*WORKLOADS, TYPED))
MOST_REQUESTS, LATEST_ARRIVAL = 60, 300
REQUESTS = NumberRule("requests", "Requests", 1, MOST_REQUESTS, 40)
RATE = NumberRule("rate", "Requests in 10 steps", 1, 50, 15)
SEED = NumberRule("seed", "Seed", 0, 9_999, 0)
BLOCKS = NumberRule("blocks", "Blocks of memory", 8, 256, 64)
BLOCK_SIZE = NumberRule("block_size", "Block size", 1, 16, 4)
LIMIT = NumberRule("limit", "Longest request", 8, 256, 64)
LINES = TextRule("lines", "Requests: step, prompt tokens, reply tokens", 1_000)
DEFAULT_LINES = "1 12 20\n1 5 9\n2 8 40\n3 16 6\n3 4 30\n4 20 12\n6 6 24\n8 10 10"

NAMES_OF_KINDS: dict[WasteKind, str] = {
    "token_states": "Token states",
    "reservation": "Reservation",
    "internal_fragmentation": "Internal fragmentation",
    "external_fragmentation": "External fragmentation and others",
    "free": "Free",
}
OURS, PAPER = "ours", "the paper's"
RULES = {
    "Max": "reserves the longest request allowed, for everybody",
    "Pow2": "reserves the prompt, and the reply rounded up to a power of two",
    "Oracle": "reserves exactly what will be needed, which no real system knows",
    "Paged": "takes a block when a token needs one",
}
FIGURES = (
    Figure("Running", "{running}"),
    Figure("Waiting", "{waiting}"),
    Figure("Tokens stored", "{waste.token_states}"),
)
STOPS = {
    "refused": "**{name}** refuses {obstacle.request_id} in step {obstacle.step}: {reason}",
    "waits": "**{name}** must let {obstacle.request_id} wait in step {obstacle.step}: {reason}",
    "preempted": "**{name}** must take {obstacle.request_id} out again in step {obstacle.step}: {reason}",
}
NEVER_STOPS = "**{name}** never has to let anybody wait."
SPLIT = "**{name}**: {ours:.1f} % of the memory held token states here; {paper:.1f} % in the paper's Fig. 2."
MEASURES: dict[str, Callable[[Lane, int], float]] = {
    "Requests running": lambda lane, step: lane.num_running[step],
    "Requests waiting": lambda lane, step: lane.num_waiting[step],
    "Tokens stored, % of memory": lambda lane, step: round(lane.waste[step].percent("token_states"), 1),
}
MEASURE = ChoiceRule("measure", "Show", tuple(MEASURES))
MOST_ROWS = 60


@dataclass(frozen=True)
class Inputs:
    """What decides the result. `lines` is empty unless the arrivals are typed in."""

    workload: str
    lines: str
    num_requests: int
    rate: int
    seed: int
    num_blocks: int
    block_size: int
    limit: int


@dataclass(frozen=True)
class Lanes:
    """All four, each with the frames of its memory. Value k of every lane: memory after step k."""

    lanes: tuple[Lane, ...]
    payloads: tuple[Payload, ...]

    @property
    def num_steps(self) -> int:
        """Until the slowest lane was done."""
        return max(lane.num_steps for lane in self.lanes)

    @property
    def first_stop(self) -> int:
        """Where the picture opens: when the last lane that stops has just stopped."""
        return max((lane.first_obstacle.step for lane in self.lanes if lane.first_obstacle), default=self.num_steps)

    def frames(self, index: int) -> LaneFrames:
        return LaneFrames(self.payloads[index], tuple(range(self.num_steps + 1)))


@dataclass(frozen=True)
class LaneFrames:
    """One lane, to play."""

    payload: Payload
    values: tuple[int, ...]


def run_race(inputs: Inputs) -> Lanes:
    """Raises ValueError with a sentence for arrivals that cannot be run here."""
    from engine.lab.race import race  # torch comes with it

    num_slots = inputs.num_blocks * inputs.block_size
    lanes = race(arrivals_of(inputs), num_slots, inputs.block_size, inputs.limit)
    num_steps = max(lane.num_steps for lane in lanes)
    return Lanes(lanes, tuple(_payload(lane, num_steps) for lane in lanes))


def arrivals_of(inputs: Inputs) -> list[Arrival]:
    """Drawn or typed. Raises ValueError for lines that are no requests, or too many, too late or too long."""
    if inputs.workload != TYPED:
        return draw_arrivals(
            WORKLOADS[inputs.workload],
            inputs.num_requests,
            requests_per_step=inputs.rate / 10,
            max_model_len=inputs.limit,
            seed=inputs.seed,
        )
    arrivals = parse_arrivals(inputs.lines)
    if not 1 <= len(arrivals) <= MOST_REQUESTS:
        raise ValueError(f"Type 1 to {MOST_REQUESTS} requests, one a line; these are {len(arrivals)}.")
    for arrival in arrivals:
        if arrival.num_tokens > inputs.limit:
            raise ValueError(
                f"{arrival.request_id} has {arrival.num_tokens} tokens with its reply; "
                f"the longest request allowed has {inputs.limit}."
            )
        if arrival.arrival_step > LATEST_ARRIVAL:
            raise ValueError(
                f"{arrival.request_id} arrives in step {arrival.arrival_step}; the last is {LATEST_ARRIVAL}."
            )
    return arrivals


def as_lines(arrivals: Sequence[Arrival]) -> str:
    """The arrivals as the box takes them."""
    return "\n".join(f"{a.arrival_step} {a.num_prompt_tokens} {a.num_output_tokens}" for a in arrivals)


def _payload(lane: Lane, num_steps: int) -> Payload:
    """The lane's frames, and idle ones behind them until all lanes are done."""
    payload = frames_payload(lane.trace, title=f"{lane.name}: {RULES[lane.name]}")
    for step in range(lane.num_steps + 1, num_steps + 1):
        payload["frames"].append({"step": step, "label": f"Step {step}", "say": ["All requests are done here."]})
    for step, frame in enumerate(payload["frames"]):
        frame |= words_of_frame(FIGURES, (), facts_at(lane, min(step, lane.num_steps)))
    return renamed(payload)


def facts_at(lane: Lane, step: int) -> Facts:
    return {"running": lane.num_running[step], "waiting": lane.num_waiting[step], "waste": lane.waste[step]}


def stops(lanes: Lanes) -> list[str]:
    """When each lane first could not go on as it liked, and why."""
    return [_stop(lane) for lane in lanes.lanes]


def _stop(lane: Lane) -> str:
    obstacle = lane.first_obstacle
    if obstacle is None:
        return tell(NEVER_STOPS, {"name": lane.name})
    return tell(STOPS[obstacle.kind], {"name": lane.name, "obstacle": obstacle, "reason": ended(obstacle.reason)})


def lanes_frame(lanes: Lanes) -> pd.DataFrame:
    """One row a lane: when it stopped, how many ran at once, how long all took."""
    rows: list[dict[str, Any]] = [
        {
            "Memory": lane.name,
            "First stop in step": lane.first_obstacle.step if lane.first_obstacle else "never",
            "Most requests at once": lane.most_running,
            "Steps until all were done": lane.num_steps,
        }
        for lane in lanes.lanes
    ]
    return pd.DataFrame(rows)


def split_frame(lanes: Lanes) -> pd.DataFrame:
    """Percent of the memory, a row for each lane and for the paper's system beside it; blank where none is printed."""
    rows: list[dict[str, Any]] = []
    for lane in lanes.lanes:
        average, printed = lane.average_percent(), lane.paper_percent
        ours = {name: round(average[kind], 1) for kind, name in NAMES_OF_KINDS.items()}
        rows.append({"Memory": lane.name, "Figures": OURS, **ours})
        theirs = {name: printed.get(kind, "") for kind, name in NAMES_OF_KINDS.items()}
        rows.append({"Memory": lane.name, "Figures": PAPER, **theirs})
    return pd.DataFrame(rows)


def splits(lanes: Lanes) -> list[str]:
    """The bars in words."""
    return [
        tell(
            SPLIT,
            {
                "name": lane.name,
                "ours": lane.average_percent()["token_states"],
                "paper": lane.paper_percent["token_states"],
            },
        )
        for lane in lanes.lanes
    ]


def over_time(lanes: Lanes, measure: str) -> pd.DataFrame:
    """One row a step, or every so many steps in a long race; a column a lane, blank when it is done."""
    count, every = MEASURES[measure], -(-lanes.num_steps // MOST_ROWS)
    rows = []
    for step in range(0, lanes.num_steps + 1, max(every, 1)):
        counts = {lane.name: count(lane, step) if step <= lane.num_steps else None for lane in lanes.lanes}
        rows.append({"Step": step} | counts)
    return pd.DataFrame(rows)
