"""The race as animated SVG: contiguous memory beside paged memory, step by step, until paging holds the most.

It plays once; where motion is unwanted it stands still at its end. Pages show it as images, for Streamlit takes SVG
out of HTML.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from course.messages import Facts, Plural, fill
from engine.i18n import N_, _
from engine.trace.state import CacheState
from views.html_parts import escaped
from views.lab.race import WORKLOAD, RaceInputs, arrivals_of
from views.memory_map.labels import PALETTE
from views.server.memoize import memoize

if TYPE_CHECKING:
    from course.race.experiment import Lane

INPUTS = RaceInputs(WORKLOAD.options[0], "", num_requests=40, rate=15, seed=0, num_blocks=64, block_size=4, limit=64)
"""What the page "Race for memory" opens with."""
NUM_SLOTS = INPUTS.num_blocks * INPUTS.block_size
SECONDS_A_STEP = 0.45
SLOTS_A_ROW, SLOT_WIDTH, ROW_HEIGHT, BOX_HEIGHT = 32, 15, 24, 21
"""Units of the picture. A row holds whole blocks, and two rows the longest request."""
TOP, GAP = 66, 36
WIDTH, HEIGHT = SLOTS_A_ROW * SLOT_WIDTH, TOP + NUM_SLOTS // SLOTS_A_ROW * ROW_HEIGHT
"""Of one lane."""
NAMES = {
    "Max": N_("Contiguous: room for the longest reply, reserved"),
    "Paged": N_("Paged: a block when a token needs one"),
}
MOST, NOW = N_("at once, at most"), N_("now {running} running, {waiting} waiting")
ALT = Plural(
    "num_slots",
    "Two memories of {n} slot and the same requests. Contiguous: {contiguous.most_running} "
    "at once. Paged: {paged.most_running} at once.",
    "Two memories of {n} slots and the same requests. Contiguous: "
    "{contiguous.most_running} at once. Paged: {paged.most_running} at once.",
)
ALT_OF_LANE = Plural(
    "most",
    "By step {step}: at most {n} request at once; now {running} running, {waiting} waiting.",
    "By step {step}: at most {n} requests at once; now {running} running, {waiting} waiting.",
)
STYLE = f"""
text {{ fill: currentColor; font: 15px sans-serif; font-variant-numeric: tabular-nums; }}
.most {{ font-size: 36px; font-weight: 700; }}
.name {{ font-weight: 600; }}
.label {{ font-size: 12px; font-weight: 600; }}
.free {{ fill: none; stroke: currentColor; stroke-opacity: 0.35; stroke-dasharray: 2 2; }}
.held {{ fill-opacity: 0.15; stroke-width: 1.5; }}
.tokens {{ fill-opacity: 0.45; stroke: none; }}
.part {{ visibility: hidden;
  animation: shown calc(var(--n) * {SECONDS_A_STEP}s) steps(1) calc(var(--a) * {SECONDS_A_STEP}s); }}
.last {{ animation-fill-mode: forwards; }}
@keyframes shown {{ from, to {{ visibility: visible; }} }}
@media (prefers-reduced-motion: reduce) {{
  .part {{ animation: none; }}
  .last {{ visibility: visible; }}
}}
"""


@dataclass(frozen=True)
class RaceAnimation:
    """Both lanes from before step 1 to the first step in which the paged one runs the most requests it ever does."""

    contiguous: Lane
    paged: Lane

    @property
    def last_step(self) -> int:
        """The step after which the paged lane runs the most requests."""
        return self.paged.num_running.index(self.paged.most_running)

    def facts(self) -> Facts:
        """What the page's templates name."""
        return {
            "contiguous": self.contiguous,
            "paged": self.paged,
            "num_requests": INPUTS.num_requests,
            "num_slots": NUM_SLOTS,
        }

    @cached_property
    def animation(self) -> str:
        """Both lanes side by side, moving: a file to save. It needs no script, so it moves wherever SVG is shown."""
        return self._side_by_side(range(self.last_step + 1))

    @cached_property
    def still(self) -> str:
        """The same at its end."""
        return self._side_by_side(range(self.last_step, self.last_step + 1))

    def _side_by_side(self, steps: range) -> str:
        """An SVG on paper of its own."""
        pictures = (
            f'<g transform="translate({12 + number * (WIDTH + GAP)} 12)">{_lane(lane, steps)}</g>'
            for number, lane in enumerate((self.contiguous, self.paged))
        )
        width, height = 2 * WIDTH + GAP + 24, HEIGHT + 24
        paper = f'<rect width="{width}" height="{height}" fill="#fff"/>'
        return _document(f"0 0 {width} {height}", fill(ALT, self.facts()), "#1B2733", paper + "".join(pictures))

    def pictures(self, ink: str) -> str:
        """A lane beside the other as HTML: moving, and still for who asked for less motion. `ink`: colour of texts."""
        images = "".join(self._image(lane, ink) for lane in (self.contiguous, self.paged))
        return f'<div class="pv-race-animation">{images}</div>'

    def _image(self, lane: Lane, ink: str) -> str:
        last = self.last_step
        alt = f"{_(NAMES[lane.name])}. {fill(ALT_OF_LANE, _counts_at(lane, last))}"
        images = ""
        for kind, steps in (("moving", range(last + 1)), ("still", range(last, last + 1))):
            document = _document(f"-1 0 {WIDTH + 2} {HEIGHT}", alt, ink, _lane(lane, steps))
            data = b64encode(document.encode()).decode()
            images += f'<img class="{kind}" alt="{escaped(alt)}" src="data:image/svg+xml;base64,{data}">'
        return images


@memoize(maxsize=1)
def race_animation() -> RaceAnimation:
    """The race that `INPUTS` decide, run by the engine once a server."""
    from course.race.experiment import race  # torch comes with it

    lanes = race(arrivals_of(INPUTS), NUM_SLOTS, INPUTS.block_size, INPUTS.limit)
    by_name = {lane.name: lane for lane in lanes}
    return RaceAnimation(by_name["Max"], by_name["Paged"])


def _document(view_box: str, alt: str, ink: str, content: str) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{view_box}" color="{ink}" role="img" '
        f'aria-label="{escaped(alt)}"><style>{STYLE}</style>{content}</svg>'
    )


def _lane(lane: Lane, steps: range) -> str:
    """Every token drawn is one that the lane's memory holds after that step. A single step does not move."""
    moments = [(*_memory(lane.trace.at(step)), _counts(lane, step)) for step in steps]
    free = (_box("free", row * SLOTS_A_ROW, SLOTS_A_ROW) for row in range(NUM_SLOTS // SLOTS_A_ROW))
    name = f'<text class="name" x="0" y="15">{escaped(_(NAMES[lane.name]))}</text>'
    return name + "".join(free) + "".join(_timed(moments) if len(moments) > 1 else moments[0])


def _memory(state: CacheState) -> Iterator[str]:
    """What each request holds, as boxes, and the part of them that has tokens."""
    for region in state.regions.values():
        yield _held(region.request_id, region.start, region.num_slots, region.num_written)
    size = state.block_size
    for sequence in state.sequences.values():
        for index, block_id in enumerate(sequence.block_table):
            written = min(max(sequence.num_computed_tokens - index * size, 0), size)
            yield _held(sequence.request_id, block_id * size, size, written)


def _held(request_id: str, start: int, num_slots: int, num_written: int) -> str:
    colour = PALETTE[int(request_id.removeprefix("r")) % len(PALETTE)]
    x, y = _place(start)
    boxes = (*_rows("held", start, num_slots), *_rows("tokens", start, num_written))
    label = f'<text class="label" x="{x + 4}" y="{y + 15}">{escaped(request_id)}</text>'
    return f'<g fill="{colour}" stroke="{colour}">{"".join(boxes)}</g>{label}'


def _rows(kind: str, start: int, num_slots: int) -> Iterator[str]:
    """One box a row that the slots lie in."""
    while num_slots > 0:
        in_row = min(num_slots, SLOTS_A_ROW - start % SLOTS_A_ROW)
        yield _box(kind, start, in_row)
        start, num_slots = start + in_row, num_slots - in_row


def _box(kind: str, start: int, num_slots: int) -> str:
    x, y = _place(start)
    return f'<rect class="{kind}" x="{x}" y="{y}" width="{num_slots * SLOT_WIDTH - 2}" height="{BOX_HEIGHT}"/>'


def _place(slot: int) -> tuple[int, int]:
    row, column = divmod(slot, SLOTS_A_ROW)
    return column * SLOT_WIDTH + 1, TOP + row * ROW_HEIGHT


def _counts(lane: Lane, step: int) -> str:
    facts = _counts_at(lane, step)
    texts = (("most", 0, 52, str(facts["most"])), ("", 54, 36, _(MOST)), ("", 54, 54, fill(NOW, facts)))
    return "".join(f'<text class="{kind}" x="{x}" y="{y}">{escaped(text)}</text>' for kind, x, y, text in texts)


def _counts_at(lane: Lane, step: int) -> Facts:
    return {
        "step": step,
        "most": max(lane.num_running[: step + 1]),
        "running": lane.num_running[step],
        "waiting": lane.num_waiting[step],
    }


def _timed(moments: Sequence[Iterable[str]]) -> Iterator[str]:
    """Every piece of the picture, shown from the first step that has it to the last one in a row that has."""
    since: dict[str, int] = {}
    for step, pieces in enumerate([*moments, ()]):
        now = dict.fromkeys(pieces)
        for piece in [piece for piece in since if piece not in now]:
            first = since.pop(piece)
            last = " last" if step == len(moments) else ""
            yield f'<g class="part{last}" style="--a:{first};--n:{step - first}">{piece}</g>'
        for piece in now:
            since.setdefault(piece, step)
