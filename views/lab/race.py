"""Experiment "Race for memory": its inputs, and the four lanes as sentences, tables, charts and frames."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pandas as pd
import plotly.graph_objects as go

from course.messages import Facts, Message, Percent, Plural, fill
from course.race.lesson import LESSON
from engine.baselines.arrivals import ALPACA, SHAREGPT, Arrival, draw_arrivals, parse_arrivals
from engine.baselines.fragmentation import KINDS, WasteKind
from engine.i18n import N_, _
from engine.trace.event_base import ended, percentage
from views.elements.charts import line_chart
from views.figures import Figure
from views.lesson_picture import renamed, words_of_frame
from views.memory_map.frames import Payload, frames_payload
from views.memory_map.labels import PALETTE
from views.url_values import ChoiceRule, NumberRule, TextRule

if TYPE_CHECKING:
    from course.race.experiment import Lane

KEY, STEP = LESSON.key, "step"
TYPED = N_("typed in")
WORKLOADS = {
    N_("like Alpaca, a quarter as long"): ALPACA.scaled(0.25),
    N_("like Alpaca, half as long"): ALPACA.scaled(0.5),
    N_("like ShareGPT, an eighth as long"): SHAREGPT.scaled(0.125),
}
WORKLOAD = ChoiceRule("workload", N_("Arrivals"), (*WORKLOADS, TYPED))
WORKLOAD_NAMES = dict(zip(WORKLOAD.options, ("Alpaca, 1/4", "Alpaca, 1/2", "ShareGPT, 1/8", TYPED), strict=True))
"""Short, for lengths that are a part of that data set's. The address has the long ones."""
MOST_REQUESTS, LATEST_ARRIVAL = 60, 300
REQUESTS = NumberRule("requests", N_("Requests"), 1, MOST_REQUESTS, 40)
RATE = NumberRule("rate", N_("Requests in 10 steps"), 1, 50, 15)
SEED = NumberRule("seed", N_("Seed"), 0, 9_999, 0)
BLOCKS = NumberRule("blocks", N_("Blocks of memory"), 8, 256, 64)
BLOCK_SIZE = NumberRule("block_size", N_("Block size"), 1, 16, 4)
LIMIT = NumberRule("limit", N_("Longest request"), 8, 256, 64)
LINES = TextRule("lines", N_("Requests: step, prompt tokens, reply tokens"), 1_000)
DEFAULT_LINES = "1 12 20\n1 5 9\n2 8 40\n3 16 6\n3 4 30\n4 20 12\n6 6 24\n8 10 10"

NAMES_OF_KINDS: dict[WasteKind, str] = {
    "token_states": N_("Token states"),
    "reservation": N_("Reservation"),
    "internal_fragmentation": N_("Internal fragmentation"),
    "external_fragmentation": N_("External fragmentation and others"),
    "free": N_("Free"),
}
OURS, PAPER = N_("ours"), N_("the paper's")
PAGED = "Paged"
CONTIGUOUS = ChoiceRule(
    "contiguous", N_("Contiguous memory beside the paged one"), (N_("Max"), N_("Pow2"), N_("Oracle"))
)
RULES = {
    "Max": N_("reserves room for the longest request allowed, for every request"),
    "Pow2": N_("reserves the prompt, and the reply rounded up to a power of two, up to the longest request allowed"),
    "Oracle": N_("reserves exactly what will be needed, which no real system can know"),
    "Paged": N_("takes a block when a token needs one"),
}
FIGURES = (
    Figure(N_("Memory"), "{name}"),
    Figure(N_("Running"), "{running}"),
    Figure(N_("Waiting"), "{waiting}"),
    Figure(N_("Tokens stored"), "{waste.token_states}"),
)
STOPS = {
    "refused": N_("**{name}** refuses {obstacle.request_id} in step {obstacle.step}: {reason}"),
    "waits": N_("**{name}** makes {obstacle.request_id} wait in step {obstacle.step}: {reason}"),
    "preempted": N_("**{name}** must preempt {obstacle.request_id} in step {obstacle.step}: {reason}"),
}
NEVER_STOPS = N_("**{name}** never makes a request wait.")
OTHER_ORDER = Message(
    N_(
        "**Not the paper's order:** {after} held {ours_after} here and {one} {ours_one}; in "
        "the paper's Fig. 2 {after} holds more than {one}."
    ),
    ours_after=Percent("ours_after", decimals=1),
    ours_one=Percent("ours_one", decimals=1),
)
SAME_ORDER = N_(
    "**The order is the paper's:** each of Max, Pow2, Oracle and Paged held more token states than the one before."
)
NOT_CROWDED = N_(
    "**{name}** never made a request wait: memory was not its limit, and its average is over all its steps."
)
AS_LARGE = Plural(
    "num_requests",
    "For {num_alike} of {n} request, Pow2 set aside as many slots as Max: it rounds up the "
    "reply, and the buddy allocator then rounds up the whole reservation.",
    "For {num_alike} of {n} requests, Pow2 set aside as many slots as Max: it rounds up "
    "the reply, and the buddy allocator then rounds up the whole reservation.",
)
SPLIT = Message(
    N_("**{name}**: {ours} of the memory held token states here; {paper} in the paper's Fig. 2."),
    ours=Percent("ours", decimals=1),
    paper=Percent("paper", decimals=1),
)
MEASURES: dict[str, Callable[[Lane, int], float]] = {
    N_("Requests running"): lambda lane, step: lane.num_running[step],
    N_("Requests waiting"): lambda lane, step: lane.num_waiting[step],
    N_("Tokens stored, % of memory"): lambda lane, step: float(percentage(lane.waste[step].percent("token_states"), 1)),
}
MEASURE = ChoiceRule("measure", N_("Show"), tuple(MEASURES))
MOST_ROWS = 60

PATTERNS = ("", "/", "x", ".", "")
"""So that the kinds are told apart without colour."""
DARK, LIGHT = "#1B2733", "#FFFFFF"
INKS = (LIGHT, DARK, DARK, DARK, "rgba(0, 0, 0, 0)")
"""Of the numbers in the bars. What is free has none: its ground is the page's own, light or dark."""
COLOURS = (PALETTE[0], PALETTE[1], PALETTE[2], "#8A8F98", "rgba(138, 143, 152, 0.18)")
SMALLEST_WITH_A_NUMBER = 6.0
"""Percent: below it a number does not fit its part of the bar."""


@dataclass(frozen=True)
class RaceInputs:
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
    def last_first_obstacle(self) -> int:
        """Where the picture opens: when the last lane that stops has just stopped."""
        return max((lane.first_obstacle.step for lane in self.lanes if lane.first_obstacle), default=self.num_steps)

    def frames(self, name: str) -> LaneFrames:
        """The frames of the lane of this name."""
        index = [lane.name for lane in self.lanes].index(name)
        return LaneFrames(self.payloads[index], tuple(range(self.num_steps + 1)))


@dataclass(frozen=True)
class LaneFrames:
    """One lane, to play."""

    payload: Payload
    values: tuple[int, ...]


def run_race(inputs: RaceInputs) -> Lanes:
    """Raises ValueError with a sentence for arrivals that cannot be run here."""
    from course.race.experiment import race  # torch comes with it

    num_slots = inputs.num_blocks * inputs.block_size
    lanes = race(arrivals_of(inputs), num_slots, inputs.block_size, inputs.limit)
    num_steps = max(lane.num_steps for lane in lanes)
    return Lanes(lanes, tuple(_payload(lane, num_steps) for lane in lanes))


def arrivals_of(inputs: RaceInputs) -> list[Arrival]:
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
        raise ValueError(
            _("Type 1 to {most_requests} requests, one a line; these are {num_arrivals}.").format(
                most_requests=MOST_REQUESTS, num_arrivals=len(arrivals)
            )
        )
    for arrival in arrivals:
        if arrival.num_tokens > inputs.limit:
            raise ValueError(
                _(
                    "{request_id} has {num_tokens} tokens with its reply; the longest request allowed has {limit}."
                ).format(request_id=arrival.request_id, num_tokens=arrival.num_tokens, limit=inputs.limit)
            )
        if arrival.arrival_step > LATEST_ARRIVAL:
            raise ValueError(
                _("{request_id} arrives in step {arrival_step}; the last is {latest_arrival}.").format(
                    request_id=arrival.request_id, arrival_step=arrival.arrival_step, latest_arrival=LATEST_ARRIVAL
                )
            )
    return arrivals


def format_arrivals(arrivals: Sequence[Arrival]) -> str:
    """The arrivals as the box takes them."""
    return "\n".join(f"{a.arrival_step} {a.num_prompt_tokens} {a.num_output_tokens}" for a in arrivals)


def _payload(lane: Lane, num_steps: int) -> Payload:
    """The lane's frames, and idle ones behind them until all lanes are done."""
    payload = frames_payload(lane.trace, title=f"{lane.name}: {_(RULES[lane.name])}")
    for step in range(lane.num_steps + 1, num_steps + 1):
        payload["frames"].append(
            {"step": step, "label": _("Step {step}").format(step=step), "say": [_("All requests are done here.")]}
        )
    for step, frame in enumerate(payload["frames"]):
        frame |= words_of_frame(FIGURES, (), facts_at(lane, min(step, lane.num_steps)))
    return renamed(payload)


def facts_at(lane: Lane, step: int) -> Facts:
    """What the page's templates name of a lane after `step`."""
    return {
        "name": lane.name,
        "running": lane.num_running[step],
        "waiting": lane.num_waiting[step],
        "waste": lane.waste[step],
    }


def stop_sentences(lanes: Lanes) -> list[str]:
    """When each lane first could not go on as it liked, and why."""
    return [_stop(lane) for lane in lanes.lanes]


def _stop(lane: Lane) -> str:
    obstacle = lane.first_obstacle
    if obstacle is None:
        return fill(NEVER_STOPS, {"name": lane.name})
    return fill(STOPS[obstacle.kind], {"name": lane.name, "obstacle": obstacle, "reason": ended(obstacle.reason)})


def summary_frame(lanes: Lanes) -> pd.DataFrame:
    """One row a lane: when it stopped, how many ran at once, how long all took."""
    rows: list[dict[str, Any]] = [
        {
            N_("Memory"): lane.name,
            N_("First stop in step"): lane.first_obstacle.step if lane.first_obstacle else _("never"),
            N_("Most requests at once"): lane.most_running,
            N_("Steps until all were done"): lane.num_steps,
        }
        for lane in lanes.lanes
    ]
    return pd.DataFrame(rows)


def usage_frame(lanes: Lanes) -> pd.DataFrame:
    """Percent of the memory, a row for each lane and for the paper's system beside it; blank where none is printed."""
    rows: list[dict[str, Any]] = []
    for lane in lanes.lanes:
        average, printed = lane.average_percent(), lane.paper_percent
        ours = {name: float(percentage(average[kind], 1)) for kind, name in NAMES_OF_KINDS.items()}
        rows.append({N_("Memory"): lane.name, N_("Figures"): _(OURS), **ours})
        theirs = {name: printed.get(kind, "") for kind, name in NAMES_OF_KINDS.items()}
        rows.append({N_("Memory"): lane.name, N_("Figures"): _(PAPER), **theirs})
    return pd.DataFrame(rows)


def share_sentences(lanes: Lanes) -> list[str]:
    """The bars in words."""
    return [
        fill(
            SPLIT,
            {
                "name": lane.name,
                "ours": lane.average_percent()["token_states"],
                "paper": lane.paper_percent["token_states"],
            },
        )
        for lane in lanes.lanes
    ]


def order_sentences(lanes: Lanes) -> list[str]:
    """Whether the bars stand in the paper's order, whose average is of another kind, and how often Pow2 is Max."""
    from course.race.experiment import num_reserved_alike, out_of_order

    max_lane, pow2_lane = lanes.lanes[:2]
    sentences = [fill(OTHER_ORDER, _two_lanes(one, after)) for one, after in out_of_order(lanes.lanes)] or [
        _(SAME_ORDER)
    ]
    sentences += [fill(NOT_CROWDED, {"name": lane.name}) for lane in lanes.lanes if not any(lane.is_crowded)]
    if num_alike := num_reserved_alike(max_lane, pow2_lane):
        num_requests = len(max_lane.trace.at(max_lane.num_steps).requests)
        sentences.append(fill(AS_LARGE, {"num_alike": num_alike, "num_requests": num_requests}))
    return sentences


def _two_lanes(one: Lane, after: Lane) -> Facts:
    return {
        "one": one.name,
        "after": after.name,
        "ours_one": one.average_percent()["token_states"],
        "ours_after": after.average_percent()["token_states"],
    }


def frame_over_steps(lanes: Lanes, measure: str) -> pd.DataFrame:
    """One row a step, or every so many steps in a long race; a column a lane, blank when it is done."""
    count, every = MEASURES[measure], -(-lanes.num_steps // MOST_ROWS)
    rows = []
    for step in range(0, lanes.num_steps + 1, max(every, 1)):
        counts = {lane.name: count(lane, step) if step <= lane.num_steps else None for lane in lanes.lanes}
        rows.append({N_("Step"): step} | counts)
    return pd.DataFrame(rows)


def usage_chart(table: pd.DataFrame) -> go.Figure:
    """Stacked bars, two a memory: our figures and the paper's, which say so below the bar."""
    figure = go.Figure()
    names = [_("paper") if row == _(PAPER) else _("ours") for row in table[N_("Figures")]]
    for kind, pattern, colour, ink in zip(KINDS, PATTERNS, COLOURS, INKS, strict=True):
        shares = pd.to_numeric(table[NAMES_OF_KINDS[kind]], errors="coerce").fillna(0.0)
        figure.add_bar(
            x=[list(table[N_("Memory")]), names], y=shares, name=_(NAMES_OF_KINDS[kind]),
            marker={"color": colour, "pattern": {"shape": pattern, "fillmode": "overlay", "size": 7, "solidity": 0.12},
                    "line": {"width": 1, "color": "rgba(138, 143, 152, 0.9)"}},
            text=[percentage(share) if share >= SMALLEST_WITH_A_NUMBER else "" for share in shares],
            textposition="inside", insidetextanchor="middle", textangle=0, constraintext="none",
            insidetextfont={"color": ink, "size": 14},
        )  # fmt: skip
    figure.update_layout(
        barmode="stack",
        height=420,
        margin={"l": 10, "r": 10, "t": 10, "b": 10},
        legend={"orientation": "h", "yanchor": "bottom", "y": 1.02, "x": 0, "traceorder": "normal"},
        yaxis={"title": _("Percent of the memory"), "range": [0, 100]},
        dragmode=False,
    )
    return figure


def chart_over_steps(table: pd.DataFrame, measure: str) -> go.Figure:
    """A line a lane; a lane ends when its last request is done."""
    figure = line_chart(table, N_("Step"), tuple(table.columns[1:]), _(measure), steps=True)
    figure.update_traces(marker_maxdisplayed=12)
    figure.update_layout(xaxis={"dtick": None, "nticks": 12})
    return figure
