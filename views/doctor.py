"""The doctor's findings for a page. They come from a process of their own: the doctor cuts off its network."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from engine.doctor.finding import Finding
from views.html_parts import escaped, notice

ROOT = Path(__file__).resolve().parent.parent
SECONDS = 60.0
COMMAND = (sys.executable, "-m", "engine.doctor", "--json", "--skip", "Port")
"""The port is not asked about: the page that asks is served on it."""


@dataclass(frozen=True)
class Checkup:
    """`clock`: when it was made, local time. `seconds` it took."""

    findings: tuple[Finding, ...]
    clock: str
    seconds: float

    @property
    def problems(self) -> tuple[Finding, ...]:
        return tuple(finding for finding in self.findings if not finding.is_ready)


def run_checkup() -> Checkup:
    """Raises OSError or subprocess.SubprocessError when the doctor itself cannot run."""
    started = time.perf_counter()
    printed = subprocess.run(COMMAND, cwd=ROOT, capture_output=True, text=True, timeout=SECONDS, check=False).stdout
    lines = (json.loads(line) for line in printed.splitlines())
    findings = tuple(Finding(line["name"], line["found"], line["fix"]) for line in lines)
    return Checkup(findings, time.strftime("%H:%M"), time.perf_counter() - started)


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
    if not checkup.findings:
        return notice("The doctor gave no answer. Run `python -m engine.doctor` to see why.", "problem")
    if not checkup.problems:
        return notice("This machine is ready.")
    names = ", ".join(finding.name for finding in checkup.problems)
    return notice(f"Not ready yet: {names}. The last column says what to do.", "problem")
