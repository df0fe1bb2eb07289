"""What fails while one request is served ends that request, and no other.

The batch runs as one, and its tokens are chosen as one. Only when that raises are its parts tried alone: keys and
values go into the same slots again and random numbers follow from the seed, so nothing is lost but time. Whatever
fails alone is at fault; its whole request ends, the others go on.

A fault in the bookkeeping of memory is nobody's: it stops the engine, since nothing can be trusted after it.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import groupby

import torch
from torch import Tensor

from engine.parts import Runner
from engine.sampler import Choice, Draw, TokenChooser
from engine.scheduler import ScheduledSequence
from engine.sequence import SequenceGroup

MODEL, SAMPLER, BEAM_SEARCH = "The model", "The sampler", "Beam search"
DETOKENIZER, STOP_CHECK = "The detokenizer", "The stop check"

_log = logging.getLogger(__name__)


class RequestFaultError(Exception):
    """`part` of the engine failed on the request being served; the cause says how. No table is half changed."""

    def __init__(self, part: str) -> None:
        super().__init__(part)
        self.part = part


@contextmanager
def blaming_the_request(part: str) -> Iterator[None]:
    """What raises in here is the fault of one request, not of the engine. Only for what touches no memory."""
    try:
        yield
    except Exception as error:
        raise RequestFaultError(part) from error


class Faults:
    """The requests of one step that cannot go on, each with a sentence that says why."""

    def __init__(self) -> None:
        self.sentences: dict[SequenceGroup, str] = {}

    def __contains__(self, group: SequenceGroup) -> bool:
        return group in self.sentences

    def add(self, group: SequenceGroup, part: str, error: Exception) -> None:
        """The sentence names the kind of error; the log has all of it."""
        _log.error("request %s is at fault: %s", group.request_id, error, exc_info=error)
        self.sentences[group] = f"{part} failed on this request ({type(error).__name__}), so it has ended."

    @contextmanager
    def of(self, group: SequenceGroup) -> Iterator[None]:
        """Serve one request: its fault is kept, and ends what is done in here."""
        try:
            yield
        except RequestFaultError as fault:
            cause = fault.__cause__
            self.add(group, fault.part, cause if isinstance(cause, Exception) else fault)


@dataclass
class BatchRun:
    """`items` that ran, `logits` with one row for each of them that needs one, `faults`: requests that did not."""

    items: list[ScheduledSequence]
    logits: Tensor
    faults: Faults = field(default_factory=Faults)


def run_isolated(runner: Runner, items: list[ScheduledSequence]) -> BatchRun:
    """Run the batch; when it raises, find out who is to blame."""
    try:
        return BatchRun(items, runner.run(items))
    except Exception:
        _log.exception("a batch of %d sequences failed; running them one by one", len(items))
        return _run_one_by_one(runner, items)


def sample_isolated(
    chooser: TokenChooser, logits: Tensor, draws: Sequence[Draw], faults: Faults
) -> list[tuple[Draw, Choice]]:
    """Choose for all draws; when that raises, for each request alone. Those at fault are left out, and kept."""
    try:
        return list(zip(draws, chooser.sample(logits, draws), strict=True))
    except Exception:
        _log.exception("sampling for %d sequences failed; sampling for each request alone", len(draws))
        return _sample_one_by_one(chooser, logits, draws, faults)


def _run_one_by_one(runner: Runner, items: Sequence[ScheduledSequence]) -> BatchRun:
    faults = Faults()
    rows: dict[int, Tensor] = {}
    for position, item in enumerate(items):
        if item.group in faults:
            continue
        with faults.of(item.group), blaming_the_request(MODEL):
            rows[position] = runner.run([item])
    healthy = [position for position, item in enumerate(items) if item.group not in faults]
    if not healthy:
        return BatchRun([], torch.empty(0), faults)
    logits = torch.cat([rows[position] for position in healthy])
    return BatchRun([items[position] for position in healthy], logits, faults)


def _sample_one_by_one(
    chooser: TokenChooser, logits: Tensor, draws: Sequence[Draw], faults: Faults
) -> list[tuple[Draw, Choice]]:
    chosen: list[tuple[Draw, Choice]] = []
    for group, of_group in groupby(draws, key=lambda draw: draw.group):
        wanted = list(of_group)
        with faults.of(group), blaming_the_request(SAMPLER):
            chosen += zip(wanted, chooser.sample(logits, wanted), strict=True)
    return chosen
