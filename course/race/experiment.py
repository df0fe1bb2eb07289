"""One stream of arrivals into four memories of the same size: contiguous Max, Pow2 and Oracle, and pages.

All four serve first come, first served, one token a running request a step, with no limit but memory. The replies
are those of the arrivals, so the lanes differ in nothing but where keys and values may lie.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from torch import Tensor

from course.scripted_engine import WordTokenizer
from engine.baselines.arrivals import Arrival
from engine.baselines.fragmentation import KINDS, PAPER_FIGURE_2, Waste, WasteKind, waste
from engine.baselines.reservations import Max, Oracle, Pow2, ReservationRule
from engine.baselines.scheduler import replay
from engine.components import EngineComponents
from engine.config import EngineConfig
from engine.engine import Engine
from engine.i18n import _
from engine.runner import NoModel
from engine.sampler import SampledToken, SampleRequest
from engine.sampling_params import SamplingParams
from engine.trace.events import AdmissionDeferred, RegionReserved, RequestPreempted, RequestRefused
from engine.trace.trace import Trace, states

PAPER_NAMES = {"Max": "Max", "Pow2": "Pow2", "Oracle": "Oracle", "Paged": "vLLM"}
"""Our lanes by the names of the paper's Fig. 2."""


@dataclass(frozen=True, slots=True)
class Obstacle:
    """The first time a lane refused, deferred or preempted a request. `reason`: that of the event."""

    step: int
    request_id: str
    kind: str
    """refused | waits | preempted"""
    reason: str


@dataclass(frozen=True, slots=True)
class Lane:
    """One memory. `waste[i]`, `num_running[i]`, `num_waiting[i]`, `is_crowded[i]`: after step i.

    Crowded: admission was deferred for lack of memory, or a request is preempted. A request that has just arrived is
    waiting, too, but not for memory.

    `first_obstacle` is None when every request was admitted at once and none was preempted.
    """

    name: str
    trace: Trace
    first_obstacle: Obstacle | None
    waste: tuple[Waste, ...]
    num_running: tuple[int, ...]
    num_waiting: tuple[int, ...]
    is_crowded: tuple[bool, ...]

    @property
    def num_steps(self) -> int:
        """Steps until all requests were done."""
        return self.trace.num_steps

    @property
    def most_running(self) -> int:
        """The most requests that ran at once."""
        return max(self.num_running)

    @property
    def paper_percent(self) -> dict[WasteKind, float]:
        """The paper's own figures for this system (Kwon et al. 2023, Fig. 2), not ours."""
        return PAPER_FIGURE_2[PAPER_NAMES[self.name]]

    def average_percent(self) -> dict[WasteKind, float]:
        """Our share of each kind, 0 to 100: the mean over the steps in which a request waited for memory.

        That is when memory is the limit, as in the paper's runs. Over all steps when none ever waited.
        """
        crowded = [w for w, is_crowded in zip(self.waste, self.is_crowded, strict=True) if is_crowded] or list(
            self.waste
        )
        return {kind: sum(w.percent(kind) for w in crowded) / len(crowded) for kind in KINDS}


def race(arrivals: Sequence[Arrival], num_slots: int, block_size: int, max_model_len: int) -> tuple[Lane, ...]:
    """The lanes Max, Pow2, Oracle, Paged, each run to the end.

    Raises ValueError when there are no arrivals, or when the paged pool would not have exactly `num_slots` slots.
    """
    if not arrivals or num_slots % block_size:
        raise ValueError(
            _("A race needs requests, and slots that are a multiple of the block size ({block_size}).").format(
                block_size=block_size
            )
        )
    rules: dict[str, ReservationRule] = {
        "Max": Max(max_model_len),
        "Pow2": Pow2(max_model_len),
        "Oracle": Oracle(max_model_len),
    }
    contiguous = {name: replay(arrivals, num_slots, rule) for name, rule in rules.items()}
    traces = contiguous | {"Paged": _paged(arrivals, num_slots // block_size, block_size, max_model_len)}
    return tuple(_lane(name, trace) for name, trace in traces.items())


def out_of_order(lanes: Sequence[Lane]) -> tuple[tuple[Lane, Lane], ...]:
    """Neighbours (one, next) of which the next held no more token states than the one, to a tenth of a percent.

    In the paper's Fig. 2 each of Max, Pow2, Oracle and vLLM holds more than the one before. Empty when it is so here.
    """
    shares = {lane.name: round(lane.average_percent()["token_states"], 1) for lane in lanes}
    return tuple((one, after) for one, after in pairwise(lanes) if shares[after.name] <= shares[one.name])


def num_reserved_alike(one: Lane, other: Lane) -> int:
    """Requests for which two contiguous lanes set aside equally many slots, with what the allocator rounded up."""
    sizes = [
        {event.request_id: event.num_slots for event in lane.trace if isinstance(event, RegionReserved)}
        for lane in (one, other)
    ]
    return sum(sizes[1].get(request_id) == num_slots for request_id, num_slots in sizes[0].items())


def _lane(name: str, trace: Trace) -> Lane:
    wastes, running, waiting, crowded = [], [], [], []
    for state in states(trace):
        statuses = [request.status for request in state.requests.values()]
        wastes.append(waste(state))
        running.append(statuses.count("running"))
        waiting.append(statuses.count("waiting") + statuses.count("preempted"))
        crowded.append(any(r.status in ("waiting", "preempted") and r.reason for r in state.requests.values()))
    return Lane(name, trace, _first_obstacle(trace), tuple(wastes), tuple(running), tuple(waiting), tuple(crowded))


def _first_obstacle(trace: Trace) -> Obstacle | None:
    kinds = {RequestRefused: "refused", AdmissionDeferred: "waits", RequestPreempted: "preempted"}
    for event in trace:
        if isinstance(event, RequestRefused | AdmissionDeferred | RequestPreempted):
            return Obstacle(event.step, event.request_id, kinds[type(event)], event.reason)
    return None


def _paged(arrivals: Sequence[Arrival], num_blocks: int, block_size: int, max_model_len: int) -> Trace:
    """The engine's own scheduler and pool on the arrivals' own replies."""
    config = EngineConfig(
        block_size=block_size,
        num_blocks=num_blocks,
        max_num_seqs=len(arrivals),
        max_num_batched_tokens=max(len(arrivals), sum(arrival.num_tokens for arrival in arrivals)),
        max_model_len=max_model_len,
        enable_prefix_caching=False,
    )
    engine = Engine(config, _replaying_components(arrivals))
    coming = sorted(arrivals, key=lambda arrival: arrival.arrival_step)
    while coming or engine.has_unfinished_requests():
        while coming and coming[0].arrival_step <= engine.trace.step + 1:
            _add(engine, coming.pop(0))
        engine.step()
    return engine.trace


def _add(engine: Engine, arrival: Arrival) -> None:
    """A request that can never fit is refused, and the engine has written why."""
    params = SamplingParams(max_tokens=arrival.num_output_tokens, ignore_eos=True)
    try:
        engine.add_request(arrival.prompt_token_ids, params, arrival.request_id)
    except ValueError:
        assert isinstance(engine.trace.events[-1], RequestRefused)


def _replaying_components(arrivals: Sequence[Arrival]) -> EngineComponents:
    tokenizer = WordTokenizer()
    for position in range(max(arrival.num_tokens for arrival in arrivals)):
        tokenizer.id_of(str(position))
    return EngineComponents(
        tokenizer=tokenizer,
        runner=NoModel(),
        sampler=_Replies({arrival.request_id: arrival.output_token_ids for arrival in arrivals}),
        store=None,
        vocab_size=tokenizer.vocab_size,
        info={"source": "engine, replies of the arrivals", "model": "none (replayed lengths)"},
    )


class _Replies:
    """A sampler that returns the next token of the arrival's own reply."""

    def __init__(self, replies: dict[str, tuple[int, ...]]) -> None:
        self._replies = replies

    def sample(self, logits: Tensor, requests: Sequence[SampleRequest]) -> list[SampledToken]:
        return [SampledToken(self._replies[d.sequence.seq_id][len(d.sequence.output_token_ids)], 0.0) for d in requests]
