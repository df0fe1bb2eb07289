"""What a reader does to memory, as text that fits in a link: `A8 B4 -A C20`.

`A8` adds request A with 8 tokens, `-A` finishes it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from engine.i18n import _

MAX_ACTIONS = 64
MAX_LENGTH = 256


@dataclass(frozen=True, slots=True)
class Add:
    """Request `request_id` comes with `num_tokens` tokens, all known and written at once."""

    request_id: str
    num_tokens: int

    def __str__(self) -> str:
        return f"{self.request_id}{self.num_tokens}"


@dataclass(frozen=True, slots=True)
class Finish:
    """Request `request_id` ends and gives its memory back."""

    request_id: str

    def __str__(self) -> str:
        return f"-{self.request_id}"


Action = Add | Finish


def parse_actions(text: str) -> tuple[Action, ...]:
    """Read actions. Raises ValueError with a sentence that names the one that is wrong."""
    words = text.split()
    if len(words) > MAX_ACTIONS:
        raise ValueError(
            _("At most {max_actions} actions can be replayed; these are {num_words}.").format(
                max_actions=MAX_ACTIONS, num_words=len(words)
            )
        )
    actions = tuple(map(_parse_action, words))
    _require_new_names(actions)
    return actions


def format_actions(actions: Iterable[Action]) -> str:
    """The text that `parse_actions` reads."""
    return " ".join(map(str, actions))


def next_name(actions: Iterable[Action]) -> str:
    """A, B, ...: the first letter, or letters, that no action has used."""
    used = {action.request_id for action in actions}
    names = (prefix + chr(ord("A") + i) for prefix in ("", "A", "B", "C") for i in range(26))
    return next(name for name in names if name not in used)


def _parse_action(word: str) -> Action:
    if match := re.fullmatch(r"-([A-Z]{1,2})", word):
        return Finish(match[1])
    match = re.fullmatch(r"([A-Z]{1,2})([0-9]{1,3})", word)
    if not match or not 1 <= int(match[2]) <= MAX_LENGTH:
        raise ValueError(
            _(
                "An action is a letter and a length from 1 to {max_length}, such as A8, or a finish, "
                "such as -A; this one is {word!r}."
            ).format(max_length=MAX_LENGTH, word=word[:20])
        )
    return Add(match[1], int(match[2]))


def _require_new_names(actions: Iterable[Action]) -> None:
    seen: set[str] = set()
    for action in actions:
        if isinstance(action, Add):
            if action.request_id in seen:
                raise ValueError(
                    _("Request {request_id} comes twice; give the second one another letter.").format(
                        request_id=action.request_id
                    )
                )
            seen.add(action.request_id)
