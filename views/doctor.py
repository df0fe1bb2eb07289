"""The doctor's findings for a page. They come from a process of their own: the doctor cuts off its network."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from engine.doctor.finding import Finding
from views.html_parts import escaped, notice

ROOT = Path(__file__).resolve().parent.parent
SECONDS = 60.0
COMMAND = (sys.executable, "-m", "engine.doctor", "--json", "--skip", "Port")
"""The port is not asked about: the page that asks is served on it."""
LOOK_CLOSER = (
    "Press the button again: what was read or compiled for the first time is quicker now. "
    "If it stops here again, `python -m engine.doctor` in a terminal has no limit and shows the fault itself."
)


@dataclass(frozen=True)
class Checkup:
    """`clock`: when it was made, local time. `seconds` it took."""

    findings: tuple[Finding, ...]
    clock: str
    seconds: float

    @property
    def problems(self) -> tuple[Finding, ...]:
        return tuple(finding for finding in self.findings if not finding.is_ready)


def run_checkup(command: Sequence[str] = COMMAND, seconds: float = SECONDS) -> Checkup:
    """What was found before the doctor ended, or before the time was over; a check without an answer is not ready.

    Raises OSError when the doctor cannot be started.
    """
    started = time.perf_counter()
    doctor = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        printed, _ = doctor.communicate(timeout=seconds)
        why = "The doctor ended in the middle of this check."
    except subprocess.TimeoutExpired:
        doctor.kill()
        printed, _ = doctor.communicate()
        why = f"No answer after {seconds:.0f} s, the limit for all checks together. Later checks were not made."
    return Checkup(tuple(_findings(printed, why)), time.strftime("%H:%M"), time.perf_counter() - started)


def _findings(printed: str, why_unanswered: str) -> Iterator[Finding]:
    """`printed` by the doctor. The check that was begun last may be without an answer."""
    under_way = "The doctor"
    for line in map(json.loads, printed.splitlines()):
        under_way = line.get("checking", "")
        if not under_way:
            yield Finding(line["name"], line["found"], line["fix"])
    if under_way:
        yield Finding(under_way, why_unanswered, LOOK_CLOSER)


def checkup_html(checkup: Checkup) -> str:
    """The verdict, and one row a check."""
    rows = "".join(
        f'<tr data-check="{escaped(finding.name)}" data-ready="{str(finding.is_ready).lower()}">'
        f'<th scope="row">{escaped(finding.name)}</th><td>{"ready" if finding.is_ready else "not ready"}</td>'
        f"<td>{escaped(finding.found)}</td><td>{escaped(finding.fix)}</td></tr>"
        for finding in checkup.findings
    )
    head = "".join(f'<th scope="col">{name}</th>' for name in ("Check", "State", "Found", "What to do"))
    caption = escaped(f"Checked at {checkup.clock}, in {checkup.seconds:.1f} s")
    table = f"<table><caption>{caption}</caption><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"
    return f'{_verdict(checkup)}<div class="pv-table" role="region" tabindex="0" aria-label="Checks">{table}</div>'


def _verdict(checkup: Checkup) -> str:
    if not checkup.problems:
        return notice("This machine is ready.")
    names = ", ".join(finding.name for finding in checkup.problems)
    return notice(f"Not ready yet: {names}. The last column says what to do.", "problem")
