"""Say within ten seconds whether this machine is ready, and what to do where it is not.

python -m engine.doctor               one line a check; exit status 0 when all are ready
python -m engine.doctor --json        the same as one JSON object a line, and one that names each check as it begins
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence

from engine.doctor.checkup import checkup
from engine.doctor.finding import Finding
from engine.doctor.network import PORT


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the findings as they come. Returns the exit status: 1 when something is not ready."""
    parser = argparse.ArgumentParser(prog="python -m engine.doctor", description="Is this machine ready?")
    parser.add_argument("--json", action="store_true", help="one JSON object a line")
    parser.add_argument("--port", type=int, default=PORT, help=f"the app's port (default: {PORT})")
    parser.add_argument("--skip", action="append", default=[], metavar="NAME", help="leave out a check, by its name")
    options = parser.parse_args(arguments)
    started = time.perf_counter()
    show = as_json if options.json else as_lines
    problems = 0

    def begin(name: str) -> None:
        if options.json and name not in options.skip:
            print(json.dumps({"checking": name}), flush=True)

    for finding in checkup(options.port, begin):
        if finding.name in options.skip:
            continue
        problems += not finding.is_ready
        print(show(finding), flush=True)
    if not options.json:
        print(f"\n{_verdict(problems)} ({time.perf_counter() - started:.1f} s)")
    return 1 if problems else 0


def as_lines(finding: Finding) -> str:
    first = f"{'ready ' if finding.is_ready else 'NOT   '} {finding.name:12} {finding.found}"
    return first if finding.is_ready else f"{first}\n       {'':12} -> {finding.fix}"


def as_json(finding: Finding) -> str:
    return json.dumps({"name": finding.name, "ready": finding.is_ready, "found": finding.found, "fix": finding.fix})


def _verdict(problems: int) -> str:
    if not problems:
        return "This machine is ready."
    return f"Not ready yet: {problems} {'thing' if problems == 1 else 'things'} to mend."


if __name__ == "__main__":
    raise SystemExit(main())
