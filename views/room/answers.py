"""How many attendees chose which answer to a predict question. Who chose what leaves this module for nobody."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

MAX_QUESTIONS = 200
MAX_CHOICES = 12


@dataclass(frozen=True)
class QuestionName:
    """A question is one for the whole room when its lesson and its seed are the same."""

    lesson: str
    seed: int


@dataclass
class Answers:
    """The last answer of each attendee counts."""

    _chosen: dict[QuestionName, dict[str, int]] = field(default_factory=dict)

    def choose(self, member_id: str, question: QuestionName, choice: int) -> bool:
        """Take an answer. Whether it changed anything; the oldest question is forgotten when there are too many."""
        if not 0 <= choice < MAX_CHOICES:
            return False
        of_question = self._chosen.setdefault(question, {})
        is_news = of_question.get(member_id) != choice
        of_question[member_id] = choice
        if len(self._chosen) > MAX_QUESTIONS:
            self._chosen.pop(next(iter(self._chosen)))
        return is_news

    def counts(self, question: QuestionName, num_choices: int) -> tuple[int, ...]:
        """Answers by choice."""
        counted = Counter(self._chosen.get(question, {}).values())
        return tuple(counted[choice] for choice in range(num_choices))
