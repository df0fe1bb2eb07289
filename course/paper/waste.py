"""Figs. 2 and 3: where the slots of a memory go."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

from course.paper.capacity import num_slots
from course.paper.record import Measured, Quantity, Record, Setup
from course.paper.workloads import FAMILIES, MIXES, TraceTask
from engine.baselines.arrivals import Arrival
from engine.baselines.contiguous import Arena
from engine.baselines.fragmentation import KINDS, PAPER_FIGURE_2, Waste, WasteKind, waste
from engine.i18n import N_, _
from engine.trace.events import SequenceFinished, StepCompleted
from engine.trace.state import CacheState
from engine.trace.trace import Trace

KIND_NAMES: dict[WasteKind, str] = {
    "token_states": N_("token states, percent"),
    "reservation": N_("reservation, percent"),
    "internal_fragmentation": N_("internal fragmentation, percent"),
    "external_fragmentation": N_("external fragmentation and others, percent"),
}
STEPS_BETWEEN_LOOKS = 32


def mean_waste(task: TraceTask) -> dict[str, float]:
    """Percent of the memory by kind, over steps in which a request waits, once those that finished would fill it.

    A step is looked at once all its tokens are written, before what has finished is freed.
    """
    from course.paper.engine_memory import EngineMemory
    from course.paper.serving import RULES, TOO_SHORT, ContiguousMemory
    from course.paper.workloads import MAX_MODEL_LEN, draw_requests

    memory: ContiguousMemory | EngineMemory
    if task.memory in RULES:
        memory = ContiguousMemory(task.num_slots, RULES[task.memory](MAX_MODEL_LEN))
    else:
        memory = EngineMemory(task.num_slots)
    requests = draw_requests(MIXES[task.mix], task.family, task.num_requests, task.seed)
    for request in requests:
        memory.add(request)
    state, looks = CacheState(), list[Waste]()
    size_finished = num_steps = 0
    while memory.num_waiting:
        step, events = memory.step_with_events()
        num_steps += 1
        is_look = size_finished >= task.num_slots and num_steps % STEPS_BETWEEN_LOOKS == 0
        for event in events:
            if is_look and isinstance(event, SequenceFinished | StepCompleted):
                looks.append(waste(state))
                is_look = False
            state.apply(event)
        size_finished += sum(requests[number].num_tokens for number in step.finished)
    if not looks:
        raise ValueError(_(TOO_SHORT))
    return {kind: sum(look.percent(kind) for look in looks) / len(looks) for kind in KINDS}


def measure_figure_2(setup: Setup) -> Measured:
    """The shares of the four memories, a value for each seed and family."""
    tasks = [
        TraceTask(memory, "ShareGPT", family, seed, num_slots("13B"), setup.num_requests("ShareGPT", num_slots("13B")))
        for memory, family, seed in product(PAPER_FIGURE_2, FAMILIES, setup.seeds)
    ]
    values: dict[str, list[float]] = {}
    for task, shares in zip(tasks, setup.run(mean_waste, tasks), strict=True):
        for kind in KIND_NAMES:
            values.setdefault(f"{task.memory}_{kind}", []).append(shares[kind])
    return Measured(values)


@dataclass(frozen=True, slots=True)
class OwnMaximum:
    """A reservation of prompt and the request's own longest reply, as Fig. 3 draws it."""

    label = "Own maximum"

    def num_slots(self, arrival: Arrival) -> int:
        """See ReservationRule."""
        return arrival.num_prompt_tokens + (arrival.max_tokens or arrival.num_output_tokens)


FIGURE_3 = {"A": (7, 3, 2048), "B": (3, 2, 512)}
"""Prompt, reply in the end, longest sequence of the two requests."""


def measure_figure_3(_setup: Setup) -> Measured:
    """Both requests in one arena, each after its first token."""
    trace = Trace()
    arena = Arena(sum(longest for _prompt, _reply, longest in FIGURE_3.values()), trace, OwnMaximum())
    values: dict[str, list[float]] = {}
    before = Waste(0, 0, 0, 0, 0)
    for name, (prompt, reply, longest) in FIGURE_3.items():
        words = [str(number) for number in range(prompt + reply)]
        arena.reserve(Arrival.from_words(name, words[:prompt], words[prompt:], max_tokens=longest - prompt))
        arena.append(name)
        now = waste(trace.at(0))
        for kind in ("token_states", "reservation", "internal_fragmentation"):
            values[f"{name}_{kind}"] = [float(getattr(now, kind) - getattr(before, kind))]
        before = now
    return Measured(values)


VLLM_FIGURE_2 = PAPER_FIGURE_2["vLLM"] | {
    "reservation": 1.04,
    "internal_fragmentation": 1.04,
    "external_fragmentation": 1.65,
}
"""Only the first is printed; the others are measured from the figure's bar."""
LOWEST, HIGHEST = 20.4, 38.2
"""Percent of the memory that holds token states in the systems before (section 1)."""


def _figure_2() -> tuple[Quantity, ...]:
    quantities = []
    for name, shares in (PAPER_FIGURE_2 | {"vLLM": VLLM_FIGURE_2}).items():
        label = name if name == "vLLM" else f"Orca ({name})"
        for kind, words in KIND_NAMES.items():
            low = high = neutral = None
            if kind == "token_states" and name == "vLLM":
                low, neutral = shares[kind], HIGHEST
            elif kind == "token_states":
                high, neutral = HIGHEST, shares_of_vllm()
            elif (name, kind) == ("Max", "external_fragmentation"):
                low = high = shares[kind]
            printed = shares[kind]
            sure = "V" if name == "vLLM" and kind != "token_states" else "L"
            quantities.append(
                Quantity(f"{name}_{kind}", words, f"{printed:g}", sure, low, high, neutral, digits=1, of=label)
            )
    return tuple(quantities)


def shares_of_vllm() -> float:
    """Percent of token states of the paper's own system."""
    return PAPER_FIGURE_2["vLLM"]["token_states"]


def _figure_3() -> tuple[Quantity, ...]:
    printed = {"A": (8, 2, 2038), "B": (4, 1, 507)}
    names = {
        "token_states": N_("slots with token states"),
        "reservation": N_("slots reserved for later"),
        "internal_fragmentation": N_("slots never used"),
    }
    return tuple(
        Quantity(f"{request}_{kind}", words, str(slots), "T", slots, slots, digits=0, of=request)
        for request, all_slots in printed.items()
        for (kind, words), slots in zip(names.items(), all_slots, strict=True)
    )


RECORDS = (
    Record(
        key="fig2",
        place=N_("Fig. 2, section 3.1"),
        title=N_("Where the memory goes"),
        quantities=_figure_2(),
        setup=(
            N_(
                "The paper averages over its experiment of section 6.2 and does not name model and trace. "
                "Here: OPT-13B, lengths like ShareGPT, a queue that is never empty. The requests of a trace would "
                "fill the memory eight times; steps count once those that have finished would fill it once."
            ),
            N_(
                "Reservations end at the longest sequence, 2048. Judged: that the three older systems use no "
                "more than 38.2 percent, that pages use 96.3 percent at least, and Orca (Max)'s 8.9 percent. "
                "The other shares depend on lengths that the paper does not publish, and are shown only."
            ),
        ),
        measure=measure_figure_2,
        why=N_(
            "Orca (Oracle) stores a few percent more here. How well reservations fit a buddy allocator "
            "depends on the lengths, and ours have the published means, not ShareGPT's own shape."
        ),
    ),
    Record(
        key="fig3",
        place=N_("Fig. 3, section 3.1"),
        title=N_("Three kinds of waste in one memory"),
        quantities=_figure_3(),
        setup=(N_("The figure is an illustration with two requests, and so is this row: the same two, in our arena."),),
        measure=measure_figure_3,
    ),
)
