"""An error while one request is served ends that request and no other.

The batch runs as one, and is sampled as one. Only when that raises are its requests tried one by one: keys and values
are written into the same slots again, and random numbers follow from the seed, so nothing is lost but time. A request
that also raises alone is ended; the others go on.

An error in the block tables or the block pool belongs to no request: it stops the engine, because the state of memory
is unknown after it.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import groupby

import torch
from torch import Tensor

from engine.components import Runner
from engine.sampler import SampledToken, Sampler, SampleRequest
from engine.scheduler import ScheduledSequence
from engine.sequence import SequenceGroup
from kernels.device_lost import DeviceLostError, is_device_lost

MODEL, SAMPLER, BEAM_SEARCH = "The model", "The sampler", "Beam search"
DETOKENIZER, STOP_CHECK = "The detokenizer", "The stop check"

_log = logging.getLogger(__name__)


class RequestError(Exception):
    """`part` of the engine raised while it served one request; `__cause__` is the error. Block tables are unchanged."""

    def __init__(self, part: str) -> None:
        super().__init__(part)
        self.part = part


class NonFiniteLogitsError(ArithmeticError):
    """The logits hold NaN or infinity, so no probabilities follow from them."""


@contextmanager
def attribute_to_request(part: str) -> Iterator[None]:
    """Turns any exception raised inside into RequestError. Only for code that does not change block tables.

    Raises DeviceLostError instead when the GPU is lost.
    """
    try:
        yield
    except Exception as error:
        raise request_error(part, error) from error


def request_error(part: str, error: Exception) -> RequestError:
    """What `attribute_to_request` raises from `error`, for what runs for every token: entering it takes microseconds.

    Raises DeviceLostError when the GPU is lost.
    """
    _stop_when_device_is_lost(error)
    return RequestError(part)


class RequestErrors:
    """The requests of one step that have to end, each with a sentence that says why."""

    def __init__(self) -> None:
        self.messages: dict[SequenceGroup, str] = {}

    def __contains__(self, group: SequenceGroup) -> bool:
        return group in self.messages

    def add(self, group: SequenceGroup, part: str, error: Exception) -> None:
        """Record `error`. The message names its type only; the traceback goes to the log."""
        _log.error("request %s failed: %s", group.request_id, error, exc_info=error)
        self.messages[group] = f"{part} failed on this request ({type(error).__name__}), so it has ended."

    @contextmanager
    def catch(self, group: SequenceGroup) -> Iterator[None]:
        """Record a RequestError raised inside for `group`, and continue behind the block."""
        try:
            yield
        except RequestError as error:
            self.add_error(group, error)

    def add_error(self, group: SequenceGroup, error: RequestError) -> None:
        """Record what `attribute_to_request` raised."""
        cause = error.__cause__
        self.add(group, error.part, cause if isinstance(cause, Exception) else error)


@dataclass
class BatchResult:
    """`items` that ran; `logits` [num_logit_rows, vocab_size], a row for each item with `needs_logits`; `errors`."""

    items: list[ScheduledSequence]
    logits: Tensor
    errors: RequestErrors = field(default_factory=RequestErrors)


def run_isolated(runner: Runner, items: list[ScheduledSequence]) -> BatchResult:
    """Run the batch; when it raises, run its sequences one by one and report the requests that raise again.

    Raises DeviceLostError when the GPU is lost: no request could run on it.
    """
    try:
        return BatchResult(items, runner.run(items))
    except Exception as error:
        _stop_when_device_is_lost(error)
        _log.exception("a batch of %d sequences failed; running them one by one", len(items))
        return _run_one_by_one(runner, items)


def sample_isolated(
    sampler: Sampler, logits: Tensor, requests: Sequence[SampleRequest], errors: RequestErrors
) -> list[tuple[SampleRequest, SampledToken]]:
    """Sample for all requests, or for each alone when that raises. Those that raise again go to `errors`.

    `logits` [num_logit_rows, vocab_size].
    """
    try:
        return list(zip(requests, sampler.sample(logits, requests), strict=True))
    except Exception as error:
        _stop_when_device_is_lost(error)
        _log.exception("sampling for %d sequences failed; sampling for each request alone", len(requests))
        return _sample_one_by_one(sampler, logits, requests, errors)


def _stop_when_device_is_lost(error: Exception) -> None:
    """Raises DeviceLostError for an error after which the GPU fails on everything."""
    if is_device_lost(error):
        raise DeviceLostError(error) from error


def _run_one_by_one(runner: Runner, items: Sequence[ScheduledSequence]) -> BatchResult:
    errors = RequestErrors()
    rows: dict[int, Tensor] = {}
    for position, item in enumerate(items):
        if item.group in errors:
            continue
        with errors.catch(item.group), attribute_to_request(MODEL):
            rows[position] = runner.run([item]).clone()  # the next run may write its logits in the same place
    healthy = [position for position, item in enumerate(items) if item.group not in errors]
    if not healthy:
        return BatchResult([], torch.empty(0), errors)
    logits = torch.cat([rows[position] for position in healthy])
    return BatchResult([items[position] for position in healthy], logits, errors)


def _sample_one_by_one(
    sampler: Sampler, logits: Tensor, requests: Sequence[SampleRequest], errors: RequestErrors
) -> list[tuple[SampleRequest, SampledToken]]:
    """Sample for each request alone. `logits` [num_logit_rows, vocab_size]."""
    chosen: list[tuple[SampleRequest, SampledToken]] = []
    for group, run in groupby(requests, key=lambda request: request.group):
        of_request = list(run)
        with errors.catch(group), attribute_to_request(SAMPLER):
            chosen += zip(of_request, sampler.sample(logits, of_request), strict=True)
    return chosen
