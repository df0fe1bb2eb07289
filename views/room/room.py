"""One room: who is in it, where the presenter is, who is stuck, what was answered, and the engine all share.

Attendees act by their member id. What only the presenter may do or see is on the desk (desk.py), which the token opens.
The room's lock is never held while the engine is asked for something: a step may take long, and lines wait for nobody.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count

from engine.sampling_params import SamplingParams
from views.room import codes
from views.room.answers import Answers, QuestionName
from views.room.limits import Limits, RefusedError, Spent
from views.room.member import Member, is_member_id, name_from
from views.room.place import Place
from views.room.settings import RoomSettings
from views.room.shared_engine import Prompt, SharedEngine

MOST_MEMBERS = 120
SECONDS_AWAY = 60.0
"""After which the prompts of somebody who has gone are aborted."""
SECONDS_IDLE = 2 * 3600.0
"""After which a room where nobody does anything ends by itself."""
TEMPERATURE = 0.7
IDLE = "Nobody did anything here for a long time, so the room has ended."


class NotInRoomError(ValueError):
    """The id is nobody's here. The message is one plain sentence."""


@dataclass(eq=False)
class Room:
    code: str
    token: str = field(repr=False)
    settings: RoomSettings = field(default_factory=RoomSettings)
    limits: Limits = field(default_factory=Limits)
    seconds_away: float = SECONDS_AWAY
    seconds_idle: float = SECONDS_IDLE
    engine: SharedEngine = field(default_factory=SharedEngine)
    members: dict[str, Member] = field(default_factory=dict, repr=False)
    answers: Answers = field(default_factory=Answers)
    place: Place | None = None
    why_over: str = ""
    version: int = 0
    """Grows with everything that a browser is told over its line."""
    _birth: str = field(default_factory=lambda: codes.new_member_id()[:6])
    _num_moves: int = 0
    _num_guests: Iterator[int] = field(default_factory=lambda: count(1))
    _last_deed: float = field(default_factory=time.monotonic)
    _lock: threading.RLock = field(default_factory=threading.RLock)

    @property
    def is_over(self) -> bool:
        return bool(self.why_over)

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
            raise NotInRoomError("This tab is not in the room. Join again with the code.")
        return self.members.get(member_id) or self._admit(member_id, name_from(name))

    def member(self, member_id: str) -> Member:
        """Raises NotInRoomError."""
        if (member := self.members.get(member_id)) is None:
            raise NotInRoomError("This tab is not in the room. Join again with the code.")
        return member

    def leave(self, member_id: str) -> None:
        self.members.pop(member_id, None)
        self.engine.abort_all_of(member_id)
        self.note_deed()

    def came(self, member_id: str) -> None:
        """A line of this member has opened."""
        with self._lock:
            self.member(member_id).came()
        self.note_deed()

    def went(self, member_id: str) -> None:
        """A line of this member has closed."""
        with self._lock:
            if (member := self.members.get(member_id)) is not None:
                member.went()
        self.note_news()

    # -- what attendees do --

    def set_stuck(self, member_id: str, is_stuck: bool) -> None:
        self.member(member_id).is_stuck = is_stuck
        self.note_deed()

    def answer(self, member_id: str, question: QuestionName, choice: int) -> None:
        """A prediction. The presenter's own is not counted."""
        member = self.member(member_id)
        with self._lock:
            is_news = not member.is_presenter and self.answers.choose(member_id, question, choice)
        if is_news:
            self.note_deed()

    def add_prompt(self, member_id: str, text: str, max_tokens: int) -> None:
        """Into the shared batch. Raises RefusedError, NotInRoomError or ValueError, each with one sentence."""
        member = self.member(member_id)
        self.limits.check_length(text, max_tokens)
        if not member.is_presenter:
            self.limits.check_share(self.spent(member_id), max_tokens)
        params = SamplingParams(temperature=TEMPERATURE, max_tokens=max_tokens, seed=self.version)
        self.engine.add(Prompt(member_id, text, params))
        member.spent = member.spent.with_prompt(max_tokens)
        self.note_deed()

    def spent(self, member_id: str) -> Spent:
        spent = self.member(member_id).spent
        return Spent(spent.prompts, spent.tokens, self.engine.num_under_way(member_id))

    # -- the room itself --

    def move_to(self, place: Place) -> None:
        """Where the presenter is now."""
        with self._lock:
            if place != self.place:
                self.place = place
                self._num_moves += 1
        self.note_deed()

    def end(self, why: str) -> None:
        """Its blocks are free when this returns."""
        self.why_over = why
        self.engine.pace = None
        self.engine.close()
        self.note_news()

    def look_after(self) -> None:
        """What time asks for: prompts of those who stayed away are aborted, an idle room ends."""
        now = time.monotonic()
        for member in list(self.members.values()):
            if member.away_since is not None and now - member.away_since > self.seconds_away:
                self._forget_wishes_of(member)
        if self.engine.is_stepping:
            self._last_deed = now
        if now - self._last_deed > self.seconds_idle:
            self.end(IDLE)

    def note_deed(self) -> None:
        """Somebody did something."""
        self._last_deed = time.monotonic()
        self.note_news()

    def note_news(self) -> None:
        with self._lock:
            self.version += 1

    def _admit(self, member_id: str, name: str) -> Member:
        with self._lock:
            if len(self.members) >= MOST_MEMBERS:
                raise RefusedError(f"The room is full: {MOST_MEMBERS} people are in it.")
            member = Member(member_id, name or f"Guest {next(self._num_guests)}", away_since=time.monotonic())
            self.members[member_id] = member
        self.note_deed()
        return member

    def _forget_wishes_of(self, member: Member) -> None:
        member.away_since, member.is_stuck = None, False
        self.engine.abort_all_of(member.id)
        self.note_news()
