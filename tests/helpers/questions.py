"""Which of its lesson's kinds a question is."""

from __future__ import annotations

from course.pages import lesson_by_key
from course.question import Question


def kind_of(question: Question) -> str:
    """The name of the function that drew it."""
    kinds = lesson_by_key(question.lesson).question_kinds
    return kinds[question.seed % len(kinds)].__name__
