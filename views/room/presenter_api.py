"""What only the presenter's token allows. Nothing else reads names, moves the room or steps its engine."""

from __future__ import annotations

from dataclasses import dataclass

from engine.i18n import N_, _
from views.room import codes
from views.room.answers import QuestionName
from views.room.place import Place
from views.room.quota import QuotaUsage
from views.room.room import Room
from views.room.settings import RoomSettings

ENDED_BY_PRESENTER = N_("The presenter has ended the room.")


class NotPresenterError(PermissionError):
    """The token is not this room's. The message is one plain sentence."""


@dataclass(frozen=True)
class People:
    """Attendees, without the presenter. `names` of those who are here, `stuck` of those who say so."""

    num_joined: int
    names: tuple[str, ...]
    stuck: tuple[str, ...]


def presenter_api(room: Room, token: str) -> PresenterApi:
    """Raises NotPresenterError."""
    if not codes.is_same(room.token, token):
        raise NotPresenterError(_("Only the presenter can do this."))
    return PresenterApi(room)


class PresenterApi:
    """Made by `presenter_api` alone, which checks the token each time."""

    def __init__(self, room: Room) -> None:
        self._room = room

    def make_presenter(self, member_id: str) -> None:
        """Make this member the presenter."""
        self._room.member(member_id).is_presenter = True
        self._room.touch()

    def move_to(self, place: Place) -> None:
        """Show the attendees who follow another page."""
        self._room.move_to(place)

    # -- the engine --

    def step(self, expected_step: int) -> None:
        """One step, if the engine still stands where the presenter saw it."""
        self._room.engine.step(expected_step)
        self._room.touch()

    def run(self, seconds_between_steps: float) -> None:
        """Step at a pace until `pause`."""
        self._room.engine.pace = seconds_between_steps
        self._room.touch()

    def pause(self) -> None:
        """Step no more by itself."""
        self._room.engine.pace = None
        self._room.touch()

    def reset(self, settings: RoomSettings) -> None:
        """A new run of these settings; everybody's share begins again."""
        self._room.settings = settings
        self._room.engine.pace = None
        self._room.engine.reset()
        for member in list(self._room.members.values()):
            member.usage, member.refusal = QuotaUsage(), ""
        self._room.touch()

    def abort(self, request_id: str) -> None:
        """End one request."""
        self._room.engine.abort(request_id)
        self._room.touch()

    def end(self) -> None:
        """End the room."""
        self._room.end(_(ENDED_BY_PRESENTER))

    # -- what nobody else sees --

    def people(self) -> People:
        """How many joined, who is here, and who is stuck."""
        attendees = [member for member in list(self._room.members.values()) if not member.is_presenter]
        return People(
            len(attendees),
            tuple(sorted(member.name for member in attendees if member.is_connected)),
            tuple(sorted(member.name for member in attendees if member.is_stuck)),
        )

    def unfinished_requests(self) -> dict[str, str]:
        """Who sent each request that has not finished; "" for somebody who has left."""
        members = self._room.members
        return {
            name: members[owner].name if owner in members else ""
            for name, owner in self._room.engine.owners_of_unfinished().items()
        }

    def counts(self, question: QuestionName, num_choices: int) -> tuple[int, ...]:
        """Answers to a question by choice."""
        return self._room.answers.counts(question, num_choices)
