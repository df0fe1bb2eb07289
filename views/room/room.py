"""One room: its members, the page the presenter shows, who is stuck, the answers, and the shared engine.

Attendees act by their member id. What only the presenter may do or see is in presenter_api.py and needs the token.
The room's lock is never held while the engine is asked for something: a step may take long, and no
WebSocket waits for it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count

from engine.i18n import N_, _
from engine.sampling_params import SamplingParams
from views.room import codes
from views.room.answers import Answers, QuestionName
from views.room.member import Member, is_member_id, name_from
from views.room.place import Place
from views.room.quota import Quota, QuotaUsage, RefusedError
from views.room.settings import RoomSettings
from views.room.shared_engine import QueuedPrompt, SharedEngine

MOST_MEMBERS = 120
SECONDS_AWAY = 60.0
"""After which the prompts of somebody who has gone are aborted."""
SECONDS_IDLE = 2 * 3600.0
"""After which a room where nobody does anything ends by itself."""
TEMPERATURE = 0.7
REFUSED_LATER = N_("One of your prompts that waited for this run was refused. ")
IDLE = N_("The room was idle for too long, so it has ended.")


class NotInRoomError(ValueError):
    """The id is nobody's here. The message is one plain sentence."""


@dataclass(eq=False)
class Room:
    """One room and everybody in it; `code` joins it, `token` presents it."""

    code: str
    token: str = field(repr=False)
    settings: RoomSettings = field(default_factory=RoomSettings)
    quota: Quota = field(default_factory=Quota)
    seconds_away: float = SECONDS_AWAY
    seconds_idle: float = SECONDS_IDLE
    engine: SharedEngine = field(default_factory=SharedEngine)
    members: dict[str, Member] = field(default_factory=dict, repr=False)
    answers: Answers = field(default_factory=Answers)
    place: Place | None = None
    end_reason: str = ""
    version: int = 0
    """Grows with everything that a browser is told over its WebSocket."""
    _birth: str = field(default_factory=lambda: codes.new_member_id()[:6])
    _num_moves: int = 0
    _num_guests: Iterator[int] = field(default_factory=lambda: count(1))
    _last_activity: float = field(default_factory=time.monotonic)
    _lock: threading.RLock = field(default_factory=threading.RLock)

    def __post_init__(self) -> None:
        self.engine.on_refused = self._take_back

    @property
    def is_over(self) -> bool:
        """Whether the room has ended."""
        return bool(self.end_reason)

    @property
    def stamp(self) -> str:
        """Names the presenter's last move. A room opened anew never has the same."""
        return f"{self._birth}.{self._num_moves}"

    # -- who is here --

    def join(self, name: str) -> Member:
        """A new member. Raises RefusedError when the room is full."""
        return self._admit(codes.new_member_id(), name_from(name))

    def readmit(self, member_id: str, name: str) -> Member:
        """Somebody who was here before the server was started anew. Raises RefusedError, NotInRoomError."""
        if not is_member_id(member_id):
            raise NotInRoomError(_("This tab is not in the room. Join again with the code."))
        return self.members.get(member_id) or self._admit(member_id, name_from(name))

    def member(self, member_id: str) -> Member:
        """Raises NotInRoomError."""
        if (member := self.members.get(member_id)) is None:
            raise NotInRoomError(_("This tab is not in the room. Join again with the code."))
        return member

    def leave(self, member_id: str) -> None:
        """Remove a member, and abort their requests. Unknown ids are ignored."""
        self.members.pop(member_id, None)
        self.engine.abort_requests_of(member_id)
        self.touch()

    def connected(self, member_id: str) -> None:
        """A WebSocket of this member has opened."""
        with self._lock:
            self.member(member_id).connected()
        self.touch()

    def disconnected(self, member_id: str) -> None:
        """A WebSocket of this member has closed."""
        with self._lock:
            if (member := self.members.get(member_id)) is not None:
                member.disconnected()
        self.bump_version()

    # -- what attendees do --

    def set_stuck(self, member_id: str, is_stuck: bool) -> None:
        """Note whether a member says that they are stuck."""
        self.member(member_id).is_stuck = is_stuck
        self.touch()

    def answer(self, member_id: str, question: QuestionName, choice: int) -> None:
        """A prediction. The presenter's own is not counted."""
        member = self.member(member_id)
        with self._lock:
            is_news = not member.is_presenter and self.answers.choose(member_id, question, choice)
        if is_news:
            self.touch()

    def add_prompt(self, member_id: str, text: str, max_tokens: int) -> None:
        """Into the shared batch. Raises RefusedError, NotInRoomError or ValueError, each with one sentence."""
        member = self.member(member_id)
        self.quota.check_length(text, max_tokens)
        params = SamplingParams(temperature=TEMPERATURE, max_tokens=max_tokens, seed=self.version)
        with member.quota_lock:  # else two tabs of one member would both find the quota unused
            if not member.is_presenter:
                self.quota.check_usage(self.usage_of(member_id), max_tokens)
            member.refusal = ""
            self.engine.add(QueuedPrompt(member_id, text, params))
            with self._lock:
                member.usage = member.usage.with_prompt(max_tokens)
        self.touch()

    def usage_of(self, member_id: str) -> QuotaUsage:
        """What a member has used of their quota. Raises NotInRoomError."""
        usage = self.member(member_id).usage
        return QuotaUsage(usage.prompts, usage.tokens, self.engine.num_unfinished(member_id))

    # -- the room itself --

    def move_to(self, place: Place) -> None:
        """Where the presenter is now."""
        with self._lock:
            if place != self.place:
                self.place = place
                self._num_moves += 1
        self.touch()

    def end(self, why: str) -> None:
        """Its blocks are free when this returns."""
        self.end_reason = why
        self.engine.pace = None
        self.engine.close()
        self.bump_version()

    def housekeeping(self) -> None:
        """Call often: abort the prompts of those who stayed away, end an idle room."""
        now = time.monotonic()
        for member in list(self.members.values()):
            if member.away_since is not None and now - member.away_since > self.seconds_away:
                self._abort_requests_of(member)
        if self.engine.is_stepping:
            self._last_activity = now
        if now - self._last_activity > self.seconds_idle:
            self.end(_(IDLE))

    def touch(self) -> None:
        """Note activity: an idle room ends, and every open tab is sent the news."""
        self._last_activity = time.monotonic()
        self.bump_version()

    def bump_version(self) -> None:
        """Every connection sends its tab the room as it is now."""
        with self._lock:
            self.version += 1

    def _admit(self, member_id: str, name: str) -> Member:
        with self._lock:
            if len(self.members) >= MOST_MEMBERS:
                raise RefusedError(
                    _("The room is full: {most_members} people are in it.").format(most_members=MOST_MEMBERS)
                )
            member = Member(
                member_id,
                name or _("Guest {number}").format(number=next(self._num_guests)),
                away_since=time.monotonic(),
            )
            self.members[member_id] = member
        self.touch()
        return member

    def _take_back(self, prompt: QueuedPrompt, why: str) -> None:
        """A prompt that waited is refused after all: it costs its owner nothing, and they are told."""
        if (member := self.members.get(prompt.owner)) is not None:
            with self._lock:
                member.usage = member.usage.without_prompt(prompt.params.max_tokens)
            member.refusal = _(REFUSED_LATER) + why
            self.bump_version()

    def _abort_requests_of(self, member: Member) -> None:
        member.away_since, member.is_stuck = None, False
        self.engine.abort_requests_of(member.id)
        self.bump_version()
