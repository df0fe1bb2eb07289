"""A model run that raises ends the requests at fault, and no others.

The batch runs as one. Only when that raises are its sequences run one by one: keys and values go into the same slots
again, so nothing is lost but time. Whatever fails alone is at fault; its whole request ends, the others go on.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from engine.parts import Runner
from engine.scheduler import ScheduledSequence
from engine.sequence import SequenceGroup

_log = logging.getLogger(__name__)


@dataclass
class BatchRun:
    """`items` that ran, `logits` with one row for each of them that needs one, `at_fault`: requests that did not."""

    items: list[ScheduledSequence]
    logits: Tensor
    at_fault: dict[SequenceGroup, Exception] = field(default_factory=dict)


def run_isolated(runner: Runner, items: list[ScheduledSequence]) -> BatchRun:
    """Run the batch; when it raises, find out who is to blame."""
    try:
        return BatchRun(items, runner.run(items))
    except Exception:
        _log.exception("a batch of %d sequences failed; running them one by one", len(items))
        return _run_one_by_one(runner, items)


def _run_one_by_one(runner: Runner, items: Sequence[ScheduledSequence]) -> BatchRun:
    at_fault: dict[SequenceGroup, Exception] = {}
    rows: dict[int, Tensor] = {}
    for position, item in enumerate(items):
        if item.group in at_fault:
            continue
        try:
            rows[position] = runner.run([item])
        except Exception as fault:
            at_fault[item.group] = fault
            _log.error("request %s is at fault: %s", item.group.request_id, fault)
    healthy = [position for position, item in enumerate(items) if item.group not in at_fault]
    if not healthy:
        return BatchRun([], torch.empty(0), at_fault)
    logits = torch.cat([rows[position] for position in healthy])
    return BatchRun([items[position] for position in healthy], logits, at_fault)
