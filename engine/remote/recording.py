"""Streams in files: the three frames of each message, `[topic, number, payload]`, one msgpack value after another.

with Recorder(path) as recorder: Subscriber(recorder, address).start() ...
read_frames(path)         the messages of a file
open_recording(path)      the same as a trace source; also reads traces in JSON
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Self

import msgspec

from engine.i18n import _
from engine.remote.feed import Feed
from engine.remote.history import History
from engine.remote.kv_events import MAX_PAYLOAD, MessageError, decode_payload
from engine.remote.publisher import TOPIC
from engine.trace.source import SourceFacts, WholeTrace, facts_of, info_of
from engine.trace.trace import Trace, TraceError

MAX_RECORDED_EVENTS, MAX_RECORDED_TOKENS = 1_000_000, 32_000_000
Frames = tuple[bytes, int, bytes]
"""Topic, number, payload."""


class RecordingError(ValueError):
    """A file that is no recording. One plain sentence."""


class Recorder:
    """A sink that writes what it is given. Gaps and restarts need no words: the numbers tell them again on reading."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("wb")
        self.num_messages = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self._file.close()

    def add_message(self, sequence: int, payload: bytes, _rank: int | None = None, /) -> None:
        """Write the three frames of a message."""
        self._file.write(msgspec.msgpack.encode([TOPIC, sequence.to_bytes(8, "big"), payload]))
        self._file.flush()
        self.num_messages += 1

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
    for _topic, sequence, payload in read_frames(data):
        rank = _rank_of(payload)
        feeds.setdefault(rank, Feed(history)).receive(sequence, payload)
    return history


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
    return WholeTrace(history_of(data).trace(info_of(facts, "recording")), facts)


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
