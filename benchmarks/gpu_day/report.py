"""The results on disk, each as soon as it is there: `results.jsonl` for programs, `report.txt` for people."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

from benchmarks.gpu_day.findings import Finding, Measured, Outcome, Remark, Row, Target

RESULTS, REPORT = "results.jsonl", "report.txt"


class Report:
    """Appends to both files in `folder`, which it makes, and prints what it writes for people."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.targets: list[tuple[str, Target]] = []
        self.outcomes: dict[str, Outcome] = {}
        self._started = time.monotonic()
        self._results = (folder / RESULTS).open("w", encoding="utf-8")
        self._text = (folder / REPORT).open("w", encoding="utf-8")

    def found(self, part: str, finding: Finding) -> None:
        if isinstance(finding, Measured):
            self._write(part, "measured", finding.row, f"  {in_words(finding.row)}")
        elif isinstance(finding, Remark):
            self._write(part, "remark", {"text": finding.text}, f"  {finding.text}")
        else:
            self.targets.append((part, finding))
            row: Row = {
                "target": finding.name, "measured": finding.measured, "at least" if finding.at_least else "at most":
                finding.limit, "verdict": finding.verdict,
            }  # fmt: skip
            self._write(part, "target", row, f"  {in_words(row)}")

    def ended(self, part: str, outcome: Outcome) -> None:
        self.outcomes[part] = outcome
        detail = f": {outcome.detail}" if outcome.detail else ""
        row: Row = {"status": outcome.status, "detail": outcome.detail, "seconds": round(outcome.seconds, 2)}
        if outcome.traceback:
            row["traceback"] = outcome.traceback
        self._write(part, "end", row, f"{part}: {outcome.status} after {outcome.seconds:.1f} s{detail}")

    def close(self) -> None:
        """Write what was met and what was not, all in one place."""
        self._say("\nTargets")
        for part, target in self.targets:
            sign = "at least" if target.at_least else "at most"
            self._say(f"  {target.verdict}: {part}, {target.name}: {target.measured:.3g}, {sign} {target.limit:g}")
        self._say("\nParts")
        for part, outcome in self.outcomes.items():
            self._say(f"  {part}: {outcome.status}{f' ({outcome.detail})' if outcome.detail else ''}")
        self._results.close()
        self._text.close()

    def _write(self, part: str, kind: str, row: Row, text: str) -> None:
        seconds = round(time.monotonic() - self._started, 2)
        self._results.write(json.dumps({"part": part, "kind": kind, "at": seconds, **row}, ensure_ascii=False) + "\n")
        _keep(self._results)
        self._say(text)

    def _say(self, text: str) -> None:
        print(text, flush=True)
        self._text.write(f"{text}\n")
        _keep(self._text)


def in_words(row: Row) -> str:
    """`batch 32, context 2048, triton ms 0.0412`."""
    return ", ".join(f"{name} {f'{value:.4g}' if isinstance(value, float) else value}" for name, value in row.items())


def _keep(file: Any) -> None:
    """On the disk now: the machine may be taken away at any moment."""
    file.flush()
    os.fsync(file.fileno())
