"""Check within ten seconds whether this machine is ready, and print what to do where it is not.

python -m tools.doctor               one line for each check; exit status 0 when all are ready
python -m tools.doctor --json        one JSON object a line: each check as it starts, and each finding
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence

from course.finding import Finding
from tools.doctor.checks import run_checks
from tools.doctor.network import PORT


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the checks and print each finding. Returns the exit status: 1 when something is not ready."""
    parser = argparse.ArgumentParser(prog="python -m tools.doctor", description="Is this machine ready?")
    parser.add_argument("--json", action="store_true", help="one JSON object a line")
    parser.add_argument("--port", type=int, default=PORT, help=f"the app's port (default: {PORT})")
    parser.add_argument("--skip", action="append", default=[], metavar="NAME", help="leave out a check, by its name")
    options = parser.parse_args(arguments)
    started = time.perf_counter()
    show = as_json if options.json else as_lines
    problems = 0

    def begin(name: str) -> None:
        if options.json:
            print(json.dumps({"checking": name}), flush=True)

    for finding in run_checks(options.port, begin, options.skip):
        problems += not finding.is_ready
        print(show(finding), flush=True)
    if not options.json:
        print(f"\n{_verdict(problems, options.skip)} ({time.perf_counter() - started:.1f} s)")
    return 1 if problems else 0


def as_lines(finding: Finding) -> str:
    """A finding as one line, and a second one with the fix where there is something to do."""
    first = f"{'ready ' if finding.is_ready else 'NOT   '} {finding.name:12} {finding.found}"
    return first if finding.is_ready else f"{first}\n       {'':12} -> {finding.fix}"


def as_json(finding: Finding) -> str:
    """A finding as one JSON object on one line."""
    return json.dumps({"name": finding.name, "ready": finding.is_ready, "found": finding.found, "fix": finding.fix})


def _verdict(problems: int, skipped: Sequence[str]) -> str:
    if not problems:
        return f"Ready, as far as was checked. Left out: {', '.join(skipped)}." if skipped else "This machine is ready."
    return f"Not ready yet: {problems} {'thing' if problems == 1 else 'things'} to mend."


if __name__ == "__main__":
    raise SystemExit(main())
