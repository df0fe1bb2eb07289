"""Streams of KV events from the command line.

python -m engine.remote print tcp://127.0.0.1:5557          one line an event, as they come (Ctrl-C ends it)
python -m engine.remote print FILE                          the same of a recording
python -m engine.remote record tcp://127.0.0.1:5557 FILE    write the stream to a file (Ctrl-C, or --seconds, ends it)
    --api http://127.0.0.1:8000                             and its metrics with it
python -m engine.remote replay FILE                         publish a recording at tcp://127.0.0.1:5557

The exit status is 0, or 1 with a sentence on standard error.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path

from engine.i18n import _, counted
from engine.remote.addresses import AddressError, events_address, http_address
from engine.remote.feed import Sink
from engine.remote.history import History
from engine.remote.kv_events import MessageError, decode_payload
from engine.remote.publisher import Publisher, PublishError
from engine.remote.recording import METRICS_TOPIC, Recorder, RecordingError, history_of, read_frames
from engine.remote.scraper import Scraper
from engine.remote.server import messages_left_out
from engine.remote.subscriber import Subscriber
from engine.trace.cache_events import BlockRemoved, BlockStored
from engine.trace.event_base import Event, one_line

LONGEST_PAUSE = 5.0
TOKENS_SHOWN = 8


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what was asked for. Returns the exit status."""
    options = _options(arguments)
    try:
        _COMMANDS[options.command](options)
    except BrokenPipeError:
        return 0
    except (AddressError, PublishError, RecordingError, OSError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


class Printer:
    """A sink that prints what comes, one line an event."""

    def __init__(self) -> None:
        self._history = History()

    def add_message(self, sequence: int, payload: bytes, rank: int | None = None, /) -> None:
        """See Sink."""
        before = self._history.last_step
        self._history.add_message(sequence, payload, rank)
        if self._history.last_step > before:
            self._print()

    def add_gap(self, first: int, last: int, rank: int | None = None, /) -> None:
        """See Sink."""
        self._history.add_gap(first, last, rank)
        self._print()

    def add_restart(self, rank: int | None = None, /) -> None:
        """See Sink."""
        self._history.add_restart(rank)
        self._print()

    def _print(self) -> None:
        for event in self._history.events_of(self._history.last_step):
            print(line_of(event), flush=True)


def line_of(event: Event) -> str:
    """One event on one line, whatever is in it."""
    line = f"{event.step:>6}  {type(event).__name__:<16}  "
    if isinstance(event, BlockStored | BlockRemoved):
        line += f"{event.block_hash}  "
    if isinstance(event, BlockStored):
        ids = " ".join(map(str, event.token_ids[:TOKENS_SHOWN]))
        more = " ..." if len(event.token_ids) > TOKENS_SHOWN else ""
        line += f"behind {event.parent_block_hash}  tokens {ids}{more}  "
    return one_line(line + event.describe())


def _print(options: argparse.Namespace) -> None:
    if "://" in options.source:
        _listen(Printer(), options)
        return
    history = history_of(Path(options.source).read_bytes())
    for step in range(history.first_step + 1, history.last_step + 1):
        for event in history.events_of(step):
            print(line_of(event))


def _record(options: argparse.Namespace) -> None:
    with Recorder(Path(options.file)) as recorder:
        scraper = Scraper(http_address(options.api), recorder.add_sample) if options.api else None
        if scraper is not None:
            scraper.start()
        _listen(recorder, options)
        if scraper is not None:
            scraper.stop()
    print(
        counted("{n} message in {file}.", "{n} messages in {file}.", recorder.num_messages, file=options.file),
        file=sys.stderr,
    )


def _listen(sink: Sink, options: argparse.Namespace) -> None:
    replay = events_address(options.replay_endpoint) if options.replay_endpoint else None
    subscriber = Subscriber(sink, events_address(options.source), replay, options.ranks)
    subscriber.start()
    with contextlib.suppress(KeyboardInterrupt):
        threading.Event().wait(options.seconds)
    subscriber.stop()
    if subscriber.num_unknown:
        print(messages_left_out(subscriber.num_unknown), file=sys.stderr)


def _replay(options: argparse.Namespace) -> None:
    frames = read_frames(Path(options.file).read_bytes())
    messages = [message for message in frames if message[0] != METRICS_TOPIC]
    first = messages[0][1] if messages else 0
    publisher = Publisher(options.endpoint, options.replay_endpoint, first=first)
    print(
        counted(
            "Publishing {n} message at {endpoint}.",
            "Publishing {n} messages at {endpoint}.",
            len(messages),
            endpoint=publisher.endpoint,
        ),
        file=sys.stderr,
        flush=True,
    )
    before: float | None = None
    with contextlib.suppress(KeyboardInterrupt):
        time.sleep(options.wait)
        for _topic, _number, payload in messages:
            before = _pause(payload, before, options.speed)
            publisher.publish(payload)
        threading.Event().wait(options.stay)
    publisher.close()


def _pause(payload: bytes, before: float | None, speed: float) -> float | None:
    """Wait as long as the server did, divided by `speed`; returns this message's time."""
    try:
        now = decode_payload(payload, 0).timestamp
    except MessageError:
        return before
    if now is not None and before is not None:
        time.sleep(min(max(now - before, 0.0) / speed, LONGEST_PAUSE))
    return now if now is not None else before


_COMMANDS = {"print": _print, "record": _record, "replay": _replay}


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m engine.remote", description="Streams of KV events.")
    commands = parser.add_subparsers(dest="command", required=True)
    for name, what in (("print", "one line an event"), ("record", "write a stream to a file")):
        command = commands.add_parser(name, help=what)
        command.add_argument("source", help="tcp://host:port" + (" or a recording" if name == "print" else ""))
        if name == "record":
            command.add_argument("file", help="the file to write")
            command.add_argument("--api", help="http://host:port, for its metrics to be recorded, too")
        command.add_argument("--replay-endpoint", help="tcp://host:port that sends old messages again")
        command.add_argument("--ranks", type=int, default=1, help="data-parallel ranks, on ports one after another")
        command.add_argument("--seconds", type=float, help="end after so many seconds (default: at Ctrl-C)")
    command = commands.add_parser("replay", help="publish a recording")
    command.add_argument("file", help="a recording")
    command.add_argument("--endpoint", default="tcp://127.0.0.1:5557", help="where to publish")
    command.add_argument("--replay-endpoint", help="where to send old messages again")
    command.add_argument("--speed", type=_positive, default=1.0, help="2 is twice as fast as it was recorded")
    command.add_argument("--wait", type=float, default=1.0, help="seconds before the first message")
    command.add_argument("--stay", type=float, help="seconds to stay after the last (default: until Ctrl-C)")
    return parser.parse_args(arguments)


def _positive(text: str) -> float:
    value = float(text)
    if not value > 0:
        raise argparse.ArgumentTypeError(_("must be above 0"))
    return value


if __name__ == "__main__":
    raise SystemExit(main())
