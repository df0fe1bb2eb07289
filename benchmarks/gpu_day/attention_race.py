"""Attention backends and their rivals in turn, for one case; FlexAttention joins on a card, if it compiles there."""

from __future__ import annotations

from benchmarks.attention import Case, Contestant, backends_for, line_up, race
from benchmarks.gpu_day.context import Context
from benchmarks.gpu_day.findings import NotHereError, Row
from kernels.backend import select_backend

FLEX = "flex_attention"
TINY_LAYERS = 2


def our_backend(context: Context) -> str:
    """The backend that is measured. Raises NotHereError with the reason where only the reference runs on a card."""
    names = backends_for(context.device)
    if not names:
        raise NotHereError(f"no kernels of ours run here: {select_backend('auto', context.device).reason}")
    return names[0]


def race_with_flex(case: Case, context: Context) -> tuple[dict[str, float], str]:
    """Seconds a layer by contestant, and why FlexAttention is not among them; empty where it is."""
    times = race_in(context, line_up(case, context.device, flex=False), case)
    if not context.on_card:
        return times, f"{FLEX} does not take part: on a CPU it compiles for minutes."
    try:
        with_flex = line_up(case, context.device, flex=True)
        return times | race_in(context, {FLEX: with_flex[FLEX]}, case), ""
    except Exception as error:  # whatever its compiler says is a result, and no reason to lose the others'
        return times, f"{FLEX} does not run: {type(error).__name__}: {(str(error).splitlines() or [''])[0]}"


def race_in(context: Context, contestants: dict[str, Contestant], case: Case) -> dict[str, float]:
    """Seconds a layer by contestant, in as many rounds as the sizes say."""
    layers = TINY_LAYERS if context.sizes.is_tiny else case.num_layers(context.device)
    return race(contestants, layers, context.sizes.rounds, context.device)


def milliseconds(times: dict[str, float]) -> Row:
    """`triton ms`, `contiguous SDPA ms`: of one layer."""
    return {f"{name} ms": 1e3 * seconds for name, seconds in times.items()}
