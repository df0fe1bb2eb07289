"""Streams in files: the three frames of each message, `[topic, number, payload]`, one msgpack value after another.

Readings of the server's metrics stand between the messages, under a topic of their own: the number is their place among
the readings, the payload a `MetricsSample` as a map, its time by the server's clock.

with Recorder(path) as recorder: Subscriber(recorder, address).start() ...
read_frames(path)         the messages of a file
open_recording(path)      the same as a trace source; also reads traces in JSON
"""

from __future__ import annotations

import contextlib
import io
import math
import threading
import time
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path
from types import TracebackType
from typing import Self

import msgspec

from engine.i18n import _
from engine.remote.feed import Feed
from engine.remote.history import History
from engine.remote.kv_events import LATEST_TIMESTAMP, MAX_PAYLOAD, MessageError, decode_payload
from engine.remote.metrics import MetricsSample
from engine.remote.publisher import TOPIC
from engine.remote.server_clock import ServerClock
from engine.remote.timeline import TimelineSecond, timeline_of
from engine.trace.source import SourceFacts, WholeTrace, facts_of, info_of
from engine.trace.trace import Trace, TraceError

MAX_RECORDED_EVENTS, MAX_RECORDED_TOKENS = 1_000_000, 32_000_000
METRICS_TOPIC = b"metrics"
SECONDS_OF_A_RECORDING = 900
_samples = msgspec.msgpack.Decoder(MetricsSample)
Frames = tuple[bytes, int, bytes]
"""Topic, number, payload."""


class RecordingError(ValueError):
    """A file that is no recording. One plain sentence."""


class Recorder:
    """A sink that writes what it is given. Gaps and restarts need no words: the numbers tell them again on reading."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("wb")
        self._lock = threading.Lock()
        self._clock = ServerClock()
        self.num_messages = 0
        self.num_samples = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self._file.close()

    def add_message(self, sequence: int, payload: bytes, _rank: int | None = None, /) -> None:
        """Write the three frames of a message."""
        with contextlib.suppress(MessageError):
            sent = decode_payload(payload, 0).timestamp
            if sent is not None:
                self._clock.note_message(sent, time.time())
        self._write(TOPIC, sequence, payload)
        self.num_messages += 1

    def add_sample(self, sample: MetricsSample) -> None:
        """Write a reading of the server's metrics."""
        told = {name: value for name, value in asdict(sample).items() if value is not None}
        payload = msgspec.msgpack.encode(told | {"time": self._clock.from_ours(sample.time)})
        self._write(METRICS_TOPIC, self.num_samples, payload)
        self.num_samples += 1

    def _write(self, topic: bytes, number: int, payload: bytes) -> None:
        with self._lock:
            self._file.write(msgspec.msgpack.encode([topic, number.to_bytes(8, "big"), payload]))
            self._file.flush()

    def add_gap(self, first: int, last: int, rank: int | None = None, /) -> None:
        """Nothing to write."""

    def add_restart(self, rank: int | None = None, /) -> None:
        """Nothing to write."""


def read_frames(data: bytes) -> Iterator[Frames]:
    """The messages of a recording. Raises RecordingError at the first that is none."""
    stream = io.BytesIO(data)
    number = 0
    while stream.tell() < len(data):
        start = stream.tell()
        try:
            topic, sequence, payload = (_binary(stream, data) for _index in range(_array_length(stream)))
        except (ValueError, IndexError):
            raise RecordingError(
                _("This is not a recording: message {number}, at byte {start}, cannot be read.").format(
                    number=number, start=start
                )
            ) from None
        if len(sequence) != 8:
            raise RecordingError(
                _("This is not a recording: message {number} has no sequence number of 8 bytes.").format(number=number)
            )
        yield topic, int.from_bytes(sequence, "big"), payload
        number += 1


def history_of(data: bytes) -> History:
    """A recording folded as if it came from a server, one feed a rank. Raises RecordingError."""
    history = History(MAX_RECORDED_EVENTS, MAX_RECORDED_TOKENS)
    feeds: dict[int | None, Feed] = {}
    for topic, sequence, payload in read_frames(data):
        if topic == METRICS_TOPIC:
            continue
        rank = _rank_of(payload)
        feeds.setdefault(rank, Feed(history)).receive(sequence, payload)
    return history


def samples_of(data: bytes) -> tuple[MetricsSample, ...]:
    """A recording's readings of the metrics, in order. Raises RecordingError."""
    return tuple(_sample(number, payload) for topic, number, payload in read_frames(data) if topic == METRICS_TOPIC)


class RecordedStream(WholeTrace):
    """A recording as a trace source. `samples`: the server's metrics, by its own clock; none in many recordings."""

    def __init__(self, trace: Trace, facts: SourceFacts, samples: tuple[MetricsSample, ...]) -> None:
        known = next((sample.num_blocks for sample in samples if sample.num_blocks is not None), None)
        super().__init__(trace, facts if facts.num_blocks is not None else replace(facts, num_blocks=known))
        self.samples = samples

    def timeline(self) -> list[TimelineSecond]:
        """Stream and metrics on one axis."""
        return timeline_of(self.per_second(), self.samples, last=SECONDS_OF_A_RECORDING)


def open_recording(data: bytes, facts: SourceFacts) -> WholeTrace:
    """A recording, of which `facts` are known, or a trace in JSON, which tells its own.

    Raises RecordingError or TraceError with one plain sentence.
    """
    if data[:1] in (b"{", b"\n", b" "):
        try:
            trace = Trace.from_json(data.decode("utf-8"))
        except UnicodeDecodeError:
            raise TraceError(_("This is not a trace file: it is not text.")) from None
        return WholeTrace(trace, facts_of(trace.info, facts.name))
    return RecordedStream(history_of(data).trace(info_of(facts, "recording")), facts, samples_of(data))


def _sample(number: int, payload: bytes) -> MetricsSample:
    try:
        sample = _samples.decode(payload)
    except msgspec.MsgspecError:
        sample = None
    is_finite = sample is not None and all(math.isfinite(v) for v in asdict(sample).values() if isinstance(v, float))
    if sample is None or not is_finite or not 0 < sample.time < LATEST_TIMESTAMP:
        raise RecordingError(_("Reading {number} of the metrics in this recording is none.").format(number=number))
    return sample


def _rank_of(payload: bytes) -> int | None:
    try:
        return decode_payload(payload, 0).rank
    except MessageError:
        return None


def _array_length(stream: io.BytesIO) -> int:
    if stream.read(1) != b"\x93":
        raise ValueError(_("not three frames"))
    return 3


def _binary(stream: io.BytesIO, data: bytes) -> bytes:
    """One msgpack value of bytes: a kind, a length of 1, 2 or 4 bytes, and as many bytes."""
    width = {0xC4: 1, 0xC5: 2, 0xC6: 4}[kind] if (kind := stream.read(1)[0]) in (0xC4, 0xC5, 0xC6) else 0
    length = int.from_bytes(stream.read(width), "big")
    if not width or length > MAX_PAYLOAD or stream.tell() + length > len(data):
        raise ValueError(_("not bytes"))
    return stream.read(length)
